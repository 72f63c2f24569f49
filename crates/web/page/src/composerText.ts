// The composer's text, with marks for pasted blocks: `[pasted 12 lines #1]`. A mark that the user edits becomes text.

import type { Part } from './contract';
import { partName, withoutEnd } from './text/format';

/** A pasted text of more lines than this, or of more characters than `PASTE_LENGTH`, becomes a block. */
const PASTE_LINES = 4;
const PASTE_LENGTH = 400;
const MARK = /\[(?:pasted \d+ lines?|file [^\]\n]{0,4096}|image [\w+.-]+) #(\d+)\]/g;

export class Blocks {
  private readonly blocks = new Map<number, Part>();
  private next = 1;

  /** Keeps a block and returns its mark. */
  add(part: Part): string {
    const number = this.next;
    this.next += 1;
    this.blocks.set(number, part);
    return partName(part).replace(/\]$/, ` #${number}]`);
  }

  /** The parts that `text` means. */
  parts(text: string): Part[] {
    const parts: Part[] = [];
    let from = 0;
    const flush = (to: number) => {
      const piece = text.slice(from, to).replace(/^\n+/, '');
      if (piece.trim()) parts.push({ type: 'text', text: withoutEnd(piece, '\n') });
    };
    for (const mark of text.matchAll(MARK)) {
      const block = this.blocks.get(Number(mark[1]));
      if (!block) continue;
      flush(mark.index);
      parts.push(block);
      from = mark.index + mark[0].length;
    }
    flush(text.length);
    return parts;
  }

  /** The text for parts. */
  text(parts: Part[]): string {
    this.blocks.clear();
    this.next = 1;
    return parts.map((part) => (part.type === 'text' ? part.text : this.add(part))).join('');
  }

  /** Where the mark begins that ends at `at`; -1 if there is none. */
  markBefore(text: string, at: number): number {
    for (const found of text.matchAll(MARK)) {
      if (found.index + found[0].length === at && this.blocks.has(Number(found[1]))) return found.index;
    }
    return -1;
  }
}

/** A draft of the session as a composer knows it, and what in it is not of this composer. */
export interface Known {
  draft: Part[];
  others: Part[];
}

export function isSame(one: Part[], other: Part[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** What was to be said, one after the other. */
export function joined(first: Part[], then: Part[]): Part[] {
  const [last, next] = [first.at(-1), then[0]];
  if (last?.type !== 'text' || next?.type !== 'text') return [...first, ...then];
  return [...first.slice(0, -1), { type: 'text', text: `${last.text}\n\n${next.text}` }, ...then.slice(1)];
}

/**
 * What is to wait in the session when a composer with `mine` is left; null if that changes nothing.
 *
 * What waits there and was never in this composer stays: it is somebody's, and was not said either. What was in it goes with what became of it.
 */
export function toKeep(waiting: Part[], mine: Part[], known: Known | null): Known | null {
  const isKnown = known !== null && isSame(waiting, known.draft);
  if (!isKnown && (mine.length === 0 || isSame(mine, waiting))) return null;
  const others = isKnown ? known.others : waiting;
  const draft = joined(others, mine);
  return isSame(draft, waiting) ? null : { draft, others };
}

/** Whether a pasted text becomes a block. */
export function isBlock(text: string): boolean {
  return text.length > PASTE_LENGTH || text.split('\n').length > PASTE_LINES;
}

/** What is being typed at the cursor, if it can be completed. */
export function typing(text: string, at: number): { kind: 'command' | 'file'; query: string; from: number } | null {
  let from = at;
  while (from > 0 && !/\s/.test(text.charAt(from - 1))) from -= 1;
  const word = text.slice(from, at);
  if (from === 0 && at === text.length && word.startsWith('/')) return { kind: 'command', query: word.slice(1), from };
  return word.startsWith('@') ? { kind: 'file', query: word.slice(1), from } : null;
}
