// Changes within a line: where as many lines are added as removed, each is compared with its counterpart.

import type { DiffLine } from '../contract';
import type { Token } from './highlight';

/** From a character up to another. */
export type Range = [from: number, to: number];

/** The part of each line that is another one, by the line's place. A line of which little stays is another line, and has no part. */
export function changedParts(lines: DiffLine[]): Map<number, Range> {
  const parts = new Map<number, Range>();
  for (let at = 0; at < lines.length; ) {
    const gone = run(lines, at, 'removed');
    const come = run(lines, at + gone, 'added');
    if (gone > 0 && gone === come) {
      for (let pair = at; pair < at + gone; pair += 1) {
        const found = between(lines[pair]?.text ?? '', lines[pair + gone]?.text ?? '');
        if (!found) continue;
        parts.set(pair, found[0]);
        parts.set(pair + gone, found[1]);
      }
    }
    at += gone + come || 1;
  }
  return parts;
}

function run(lines: DiffLine[], from: number, kind: DiffLine['kind']): number {
  let end = from;
  while (lines[end]?.kind === kind) end += 1;
  return end - from;
}

/** Words are not cut: a changed letter marks the whole of its word. */
function between(old: string, now: string): [Range, Range] | null {
  const [a, b] = [old.match(WORDS) ?? [], now.match(WORDS) ?? []];
  let [lead, trail] = [0, 0];
  while (lead < a.length && lead < b.length && a[lead] === b[lead]) lead += 1;
  while (trail < a.length - lead && trail < b.length - lead && a[a.length - 1 - trail] === b[b.length - 1 - trail]) trail += 1;
  const length = (words: string[]) => words.reduce((sum, word) => sum + word.length, 0);
  const from = length(a.slice(0, lead));
  const same = from + length(a.slice(a.length - trail));
  const stays = a.slice(0, lead).concat(a.slice(a.length - trail)).join('').trim().length;
  if (stays * 3 < Math.min(old.trim().length, now.trim().length)) return null;
  return [
    [from, from + old.length - same],
    [from, from + now.length - same],
  ];
}
const WORDS = /[\p{L}\p{N}_]+|\s+|[^]/gu;

/** Tokens cut where the part begins and ends, each with whether it is in it. */
export function marked(tokens: Token[], [from, to]: Range): [Token, boolean][] {
  const out: [Token, boolean][] = [];
  let at = 0;
  for (const [kind, text] of tokens) {
    const cuts = [0, from - at, to - at, text.length].map((cut) => Math.max(0, Math.min(cut, text.length)));
    for (let piece = 0; piece < 3; piece += 1) {
      const part = text.slice(cuts[piece], cuts[piece + 1]);
      if (part) out.push([[kind, part], piece === 1]);
    }
    at += text.length;
  }
  return out;
}
