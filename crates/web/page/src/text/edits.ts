// What a call of an edit tool changed, from what the model wrote: the file itself may be another one by now.

import type { Details, DiffLine, FileDiff, HunkLines } from '../contract';

/** Larger replacements are not compared line by line. */
const MAX_COMPARED = 250_000;

export interface CallChange {
  diff: FileDiff;
  /** Whether the same was done in other places of the file, which the diff does not show. */
  isEverywhere: boolean;
  /** Whether it is all of the file, which may have been there before. */
  isWritten: boolean;
}

interface Edit {
  old: string;
  new: string;
}

/** The change that a call made; null if it is no edit, or the arguments are not what they should be. */
export function ofCall(tool: string, json: string, details: Details | null | undefined): CallChange | null {
  if (tool !== 'edit_file' && tool !== 'multi_edit' && tool !== 'write_file') return null;
  const given = object(json);
  if (!given || typeof given['path'] !== 'string') return null;
  const numbers = details && 'lines' in details ? details.lines : [];
  let hunks: HunkLines[];
  if (tool === 'write_file') {
    if (typeof given['content'] !== 'string') return null;
    hunks = [{ start: [1, 1], lines: linesOf(given['content']).map((text) => ({ kind: 'added', text })) }];
  } else {
    const edits = tool === 'edit_file' ? [given] : given['edits'];
    if (!Array.isArray(edits) || !edits.every(isEdit)) return null;
    hunks = edited(edits, numbers);
  }
  const count = (kind: DiffLine['kind']) =>
    hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.kind === kind).length, 0);
  const all = Array.isArray(given['edits']) ? given['edits'] : [];
  const isEverywhere = [given, ...all].some((edit) => (edit as Record<string, unknown>)?.['replace_all'] === true);
  return { diff: { path: given['path'], added: count('added'), removed: count('removed'), hunks, left_out: 0 }, isEverywhere, isWritten: tool === 'write_file' };
}

/** Whether a difference of whole lines can be what a call made of its file: it may be another one's, or of another moment. */
export function fits(whole: FileDiff, { diff, isWritten }: CallChange): boolean {
  if (typeof whole.path !== 'string' || typeof diff.path !== 'string' || whole.instead) return false;
  const path = diff.path.replace(/^\.\//, '');
  // The model may have named it by its whole path.
  if (path !== whole.path && !path.endsWith(`/${whole.path}`)) return false;
  const of = (file: FileDiff, kind: DiffLine['kind']) => file.hunks.flatMap((hunk) => hunk.lines.filter((line) => line.kind === kind).map((line) => line.text));
  const [come, gone] = [of(whole, 'added'), of(whole, 'removed')];
  if (isWritten) {
    const written = new Set(of(diff, 'added'));
    return [...come, ...of(whole, 'same')].every((line) => written.has(line));
  }
  const isThere = (part: string, lines: string[]) => lines.some((line) => line.includes(part));
  return of(diff, 'added').every((part) => isThere(part, come)) && of(diff, 'removed').every((part) => isThere(part, gone));
}

/** What is in a call's arguments, if they are an object. */
export function object(json: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

function isEdit(value: unknown): value is Edit {
  const edit = value as Partial<Edit> | null;
  return typeof edit?.old === 'string' && typeof edit.new === 'string';
}

function edited(edits: Edit[], numbers: number[]): HunkLines[] {
  // Where there is not a number for each, nobody knows where.
  const known = edits.length === numbers.length;
  return edits.map((edit, at) => {
    const line = known ? (numbers[at] ?? 0) : 0;
    return { start: [line, line], lines: compare(edit.old, edit.new) };
  });
}

function linesOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/\r$/, ''));
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** The lines of both: what they have in common once. */
export function compare(before: string, after: string): DiffLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  let lead = 0;
  while (lead < old.length && lead < now.length && old[lead] === now[lead]) lead += 1;
  let trail = 0;
  while (trail < old.length - lead && trail < now.length - lead && old[old.length - 1 - trail] === now[now.length - 1 - trail]) {
    trail += 1;
  }
  const out: DiffLine[] = [];
  const add = (kind: DiffLine['kind'], text: string) => out.push({ kind, text });
  for (const line of old.slice(0, lead)) add('same', line);
  const [gone, come] = [old.slice(lead, old.length - trail), now.slice(lead, now.length - trail)];
  let [from, to] = [0, 0];
  for (const [i, j] of [...common(gone, come), [gone.length, come.length] as [number, number]]) {
    for (const line of gone.slice(from, i)) add('removed', line);
    for (const line of come.slice(to, j)) add('added', line);
    const same = gone[i];
    if (same !== undefined) add('same', same);
    [from, to] = [i + 1, j + 1];
  }
  for (const line of old.slice(old.length - trail)) add('same', line);
  return out;
}

/** The longest sequence of lines that both have, as pairs of where they are. */
function common(old: string[], now: string[]): [number, number][] {
  if (old.length * now.length > MAX_COMPARED) return [];
  const columns = now.length + 1;
  const lengths = new Uint32Array((old.length + 1) * columns);
  const length = (i: number, j: number) => lengths[i * columns + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      lengths[i * columns + j] = old[i] === now[j] ? length(i + 1, j + 1) + 1 : Math.max(length(i + 1, j), length(i, j + 1));
    }
  }
  const pairs: [number, number][] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      pairs.push([i, j]);
      i += 1;
      j += 1;
    } else if (length(i + 1, j) >= length(i, j + 1)) i += 1;
    else j += 1;
  }
  return pairs;
}
