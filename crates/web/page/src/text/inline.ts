// Inline markdown: emphasis, code, links. Text in, a tree out; nothing is ever HTML.

import { withoutEnd } from './format';

export type Inline =
  | string
  | { kind: 'code'; text: string }
  | { kind: 'strong' | 'em' | 'del'; children: Inline[] }
  | { kind: 'link'; href: string | null; children: Inline[] }
  | { kind: 'break' };

/** Deeper nesting is shown as it was written. */
const MAX_DEPTH = 8;

/** Addresses of links are not longer. */
const MAX_ADDRESS = 2_000;

/** A reader of one text that is read from its beginning to its end. What was found is remembered, so that no text takes more than a few looks at each character. */
class Reader {
  private readonly found = new Map<string, { from: number; at: number }>();
  private ticks: Map<number, number[]> | null = null;
  constructor(private readonly text: string) {}

  /** Where `what` is next, from `from` on. */
  find(what: string, from: number): number {
    return this.remembered(what, from, () => this.text.indexOf(what, from));
  }

  /** Where emphasis with `mark` ends, from `from` on. Whether a place ends one does not depend on where it began. */
  end(mark: string, from: number): number {
    return this.remembered(`${mark}$`, from, () => {
      let at = this.text.indexOf(mark, from);
      while (at >= 0 && !closes(this.text, at, mark, mark[0] ?? '')) at = this.text.indexOf(mark, at + 1);
      return at;
    });
  }

  private remembered(key: string, from: number, look: () => number): number {
    const known = this.found.get(key);
    if (known && from >= known.from && (known.at < 0 || from <= known.at)) return known.at;
    const at = look();
    this.found.set(key, { from, at });
    return at;
  }

  /** Where the next run of exactly `count` backticks begins, from `from` on. */
  tick(count: number, from: number): number {
    if (!this.ticks) {
      this.ticks = new Map();
      for (const run of this.text.matchAll(/`+/g)) {
        const same = this.ticks.get(run[0].length);
        if (same) same.push(run.index);
        else this.ticks.set(run[0].length, [run.index]);
      }
      // What comes first is taken from the end.
      for (const runs of this.ticks.values()) runs.reverse();
    }
    const runs = this.ticks.get(count) ?? [];
    while (runs.length > 0 && (runs.at(-1) ?? 0) < from) runs.pop();
    return runs.at(-1) ?? -1;
  }
}

export function parseInline(text: string, depth = 0): Inline[] {
  const out: Inline[] = [];
  const reader = new Reader(text);
  // Joined once: text that grows piece by piece and is looked at meanwhile is copied every time.
  let plain: string[] = [];
  const flush = () => {
    const text = plain.join('');
    if (text) out.push(text);
    plain = [];
  };
  const push = (node: Inline, next: number): number => {
    flush();
    out.push(node);
    return next;
  };
  let at = 0;
  while (at < text.length) {
    const c = text[at] ?? '';
    const next = special(text, at, c, depth, reader, push);
    if (next > at) {
      at = next;
    } else if (c === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '')) {
      plain.push(text[at + 1] ?? '');
      at += 2;
    } else if (c === '\n') {
      if (text[at - 1] === ' ' && text[at - 2] === ' ') {
        plain = [plain.join('').trimEnd()];
        at = push({ kind: 'break' }, at + 1);
      } else {
        plain.push('\n');
        at += 1;
      }
    } else {
      const run = /[^\\`*_~[<!\nh]+/y;
      run.lastIndex = at + 1;
      const rest = run.exec(text)?.[0] ?? '';
      plain.push(c + rest);
      at += 1 + rest.length;
    }
  }
  flush();
  return out;
}

type Push = (node: Inline, next: number) => number;

/** Reads what begins at `at`; returns `at` if that is only text. */
function special(text: string, at: number, c: string, depth: number, reader: Reader, push: Push): number {
  switch (c) {
    case '`':
      return code(text, at, reader, push);
    case '*':
    case '_':
    case '~':
      return depth < MAX_DEPTH ? emphasis(text, at, c, depth, reader, push) : at;
    case '!':
      // Nothing is loaded from anywhere: an image is a link to it.
      return text[at + 1] === '[' && depth < MAX_DEPTH ? link(text, at + 1, depth, reader, push, at) : at;
    case '[':
      return depth < MAX_DEPTH ? link(text, at, depth, reader, push, at) : at;
    case '<': {
      const found = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
      found.lastIndex = at;
      const address = found.exec(text)?.[1];
      return address ? push({ kind: 'link', href: safe(address), children: [address] }, at + address.length + 2) : at;
    }
    case 'h': {
      if (at > 0 && /\w/.test(text[at - 1] ?? '')) return at;
      const found = /https?:\/\/[^\s<>`"')\]]+/y;
      found.lastIndex = at;
      const address = withoutEnd(found.exec(text)?.[0] ?? '', '.,;:!?*_');
      return address ? push({ kind: 'link', href: safe(address), children: [address] }, at + address.length) : at;
    }
    default:
      return at;
  }
}

function code(text: string, at: number, reader: Reader, push: Push): number {
  let count = 1;
  while (text[at + count] === '`') count += 1;
  const fence = '`'.repeat(count);
  const end = reader.tick(count, at + count);
  // Marks without an end are text, all of them at once.
  if (end < 0) return count > 1 ? push(fence, at + count) : at;
  let inner = text.slice(at + count, end).replace(/\n/g, ' ');
  if (inner.startsWith(' ') && inner.endsWith(' ') && inner.trim()) inner = inner.slice(1, -1);
  return push({ kind: 'code', text: inner }, end + count);
}

function emphasis(text: string, at: number, c: string, depth: number, reader: Reader, push: Push): number {
  const isDouble = text[at + 1] === c;
  if (c === '~' && !isDouble) return at;
  const mark = isDouble ? c + c : c;
  const start = at + mark.length;
  if (/\s/.test(text[start] ?? ' ')) return at;
  // Within words `_` is a letter.
  if (c === '_' && /\w/.test(text[at - 1] ?? '')) return at;
  const end = reader.end(mark, start);
  if (end <= start) return at;
  const kind = c === '~' ? 'del' : isDouble ? 'strong' : 'em';
  return push({ kind, children: parseInline(text.slice(start, end), depth + 1) }, end + mark.length);
}

function closes(text: string, end: number, mark: string, c: string): boolean {
  const [before, after] = [text[end - 1] ?? ' ', text[end + mark.length] ?? ' '];
  if (/\s/.test(before)) return false;
  // One mark is not the half of two, unless it is the last of three.
  if (mark.length === 1 && (after === c || before === c) && text.slice(end - 2, end) !== c + c) return false;
  return c !== '_' || !/\w/.test(after);
}

function link(text: string, open: number, depth: number, reader: Reader, push: Push, at: number): number {
  const close = reader.find('](', open);
  if (close < 0) return at;
  const label = text.slice(open + 1, close);
  if (label.includes('[') || label.includes('\n\n')) return at;
  const end = reader.find(')', close);
  if (end < 0 || end - close > MAX_ADDRESS) return at;
  const target = /^<?([^\s<>]*)>?(?:\s+["'(].*)?$/.exec(text.slice(close + 2, end).trim())?.[1];
  if (target === undefined) return at;
  return push({ kind: 'link', href: safe(target), children: parseInline(label || target, depth + 1) }, end + 1);
}

/** An address that may be followed; null for any other. */
export function safe(address: string): string | null {
  return /^(https?:\/\/|mailto:)/i.test(address) ? address : null;
}
