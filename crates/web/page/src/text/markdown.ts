// Markdown of models: blocks. Text in, a tree out. HTML in it is text.
//
// A text that is still coming is read as if it ended here, so that an open fence is already code; `Pieces` cuts it where nothing that
// comes later can change what is before, so that only its last piece is read again for every word.
//
// Whatever the text, each of its characters is looked at a few times and no more: what a session holds is drawn whenever it is opened.

import { type Inline, parseInline } from './inline';

export type Node =
  | { kind: 'heading'; level: number; children: Inline[] }
  | { kind: 'paragraph'; children: Inline[] }
  | { kind: 'code'; language: string; text: string }
  | { kind: 'quote'; children: Node[] }
  | { kind: 'list'; start: number | null; items: { checked: boolean | null; children: Node[] }[] }
  | { kind: 'table'; align: ('left' | 'right' | 'center' | null)[]; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

const FENCE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const FENCE_END = /^ {0,3}(`{3,}|~{3,})\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?: {1,4}(?=\S)| *$|\t)/;
const HEADING = /^ {0,3}(#{1,6})(?=\s|$)/;
const QUOTE = /^ {0,3}> ?/;
/** Deeper nesting is shown flat. */
const MAX_DEPTH = 8;
/** So much of a block without a blank line is read as markdown; the rest is shown as it was written. */
export const MAX_BLOCK = 32_000;

/** A piece of a text that can be read apart. */
export interface Piece {
  kind: 'markdown' | 'plain';
  text: string;
}

/** Cuts a text into pieces. Of one that has grown since the last time only the last piece is looked at again. */
export class Pieces {
  /** The pieces that stay as they are, whatever comes, and the text they were cut from. */
  private readonly settled: Piece[] = [];
  private before = '';
  private isPlain = false;

  take(text: string): Piece[] {
    if (!text.startsWith(this.before)) {
      this.settled.length = 0;
      this.before = '';
      this.isPlain = false;
    }
    const open: Piece[] = [];
    const settle = (piece: Piece, end: number, isNextPlain: boolean, isSettled: boolean) => {
      if (!isSettled || open.length > 0) {
        open.push(piece);
        return;
      }
      this.settled.push(piece);
      this.before = text.slice(0, end);
      this.isPlain = isNextPlain;
    };
    cut(text, this.before.length, this.isPlain, settle);
    return [...this.settled, ...open];
  }
}

/** Told of a piece, where it ends, what the next one is, and whether anything that comes later can change that. */
type Settle = (piece: Piece, end: number, isNextPlain: boolean, isSettled: boolean) => void;

/** Cuts what is in `text` from `begin` on. */
function cut(text: string, begin: number, beginsPlain: boolean, settle: Settle): void {
  let [start, isPlain] = [begin, beginsPlain];
  /** The first line of the piece that is not blank; null until there is one. */
  let first: string | null = null;
  let fence: string | null = null;
  let [wasBlank, wasFence] = [false, false];
  const end = (at: number, isNextPlain: boolean, isSettled: boolean) => {
    // Blank lines at the end are nobody's.
    if (first !== null) settle({ kind: isPlain ? 'plain' : 'markdown', text: text.slice(start, at) }, at, isNextPlain, isSettled);
    [start, isPlain, first, fence] = [at, isNextPlain, null, null];
  };
  for (let at = begin; at < text.length; ) {
    const newline = text.indexOf('\n', at);
    const next = newline < 0 ? text.length : newline + 1;
    let line = text.slice(at, newline < 0 ? next : newline);
    const isBlank = fence === null && !line.trim();
    if (first !== null && fence === null && !isBlank) {
      const isFull = at - start >= MAX_BLOCK;
      const isNew = wasBlank && !(/^( {2,}|\t)/.test(line) || (!isPlain && ITEM.test(first) && ITEM.test(line)));
      if (isNew || ((isPlain || isFull) && (wasBlank || wasFence || begins(line, 0)))) end(at, false, newline >= 0);
      else if (isFull) end(at, true, newline >= 0);
    }
    // A line that is too long is cut wherever that is.
    if (fence === null && !isBlank && line.length > MAX_BLOCK) {
      if (at > start) end(at, isPlain, true);
      while (line.length > MAX_BLOCK) {
        first = line;
        const length = isHalf(line, MAX_BLOCK) ? MAX_BLOCK - 1 : MAX_BLOCK;
        line = line.slice(length);
        end(start + length, true, true);
      }
    }
    if (!isBlank) first ??= line;
    const after: string | null = isPlain ? null : fenceAfter(fence, line);
    wasFence = fence !== null && after === null;
    fence = after;
    wasBlank = isBlank;
    at = next;
  }
  end(text.length, false, false);
}

/** Whether a cut at `at` would be within a character. */
function isHalf(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}

function fenceAfter(fence: string | null, line: string): string | null {
  if (fence === null) return /^\s*(`{3,}(?!`)|~{3,}(?!~))[^`]*$/.exec(line)?.[1] ?? null;
  const closed = /^\s*(`{3,}|~{3,})\s*$/.exec(line)?.[1];
  return closed && closed[0] === fence[0] && closed.length >= fence.length ? null : fence;
}

export function parse(text: string): Node[] {
  return blocks(text.replace(/\r\n?/g, '\n').split('\n'), 0);
}

function blocks(lines: string[], depth: number): Node[] {
  const out: Node[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const read =
      fenced(lines, at, out) ||
      heading(line, at, out) ||
      rule(line, at, out) ||
      (depth < MAX_DEPTH ? quote(lines, at, out, depth) || list(lines, at, out, depth) : 0) ||
      table(lines, at, out) ||
      indented(lines, at, out) ||
      paragraph(lines, at, out, depth);
    at = read;
  }
  return out;
}

function fenced(lines: string[], at: number, out: Node[]): number {
  const open = FENCE.exec(lines[at] ?? '');
  if (!open) return 0;
  const mark = open[1] ?? '';
  const indent = new RegExp(`^ {0,${/^ */.exec(lines[at] ?? '')?.[0].length ?? 0}}`);
  const body: string[] = [];
  let next = at + 1;
  for (; next < lines.length; next += 1) {
    const line = lines[next] ?? '';
    const close = FENCE_END.exec(line)?.[1];
    if (close && close[0] === mark[0] && close.length >= mark.length) {
      next += 1;
      break;
    }
    body.push(line.replace(indent, ''));
  }
  out.push({ kind: 'code', language: (open[2] ?? '').trim().split(/[\s,{]/)[0]?.toLowerCase() ?? '', text: body.join('\n') });
  return next;
}

function heading(line: string, at: number, out: Node[]): number {
  const open = HEADING.exec(line);
  if (!open) return 0;
  let text = line.slice(open[0].length).trim();
  let end = text.length;
  while (text[end - 1] === '#') end -= 1;
  // Marks at the end belong to those at the beginning, unless they are part of a word.
  if (end === 0 || /\s/.test(text[end - 1] ?? '')) text = text.slice(0, end).trimEnd();
  out.push({ kind: 'heading', level: open[1]?.length ?? 1, children: parseInline(text) });
  return at + 1;
}

function rule(line: string, at: number, out: Node[]): number {
  if (!isRule(line)) return 0;
  out.push({ kind: 'rule' });
  return at + 1;
}

/** Whether a line is three or more of the same mark, and nothing else. */
function isRule(line: string): boolean {
  const mark = /^ {0,3}([-*_])/.exec(line)?.[1];
  if (!mark) return false;
  let count = 0;
  for (const c of line) {
    if (c === mark) count += 1;
    else if (!/\s/.test(c)) return false;
  }
  return count >= 3;
}

function quote(lines: string[], at: number, out: Node[], depth: number): number {
  if (!QUOTE.test(lines[at] ?? '')) return 0;
  const body: string[] = [];
  let next = at;
  for (; next < lines.length; next += 1) {
    const line = lines[next] ?? '';
    if (QUOTE.test(line)) body.push(line.replace(QUOTE, ''));
    else if (line.trim() && !begins(line, depth)) body.push(line);
    else break;
  }
  out.push({ kind: 'quote', children: blocks(body, depth + 1) });
  return next;
}

function list(lines: string[], at: number, out: Node[], depth: number): number {
  const first = ITEM.exec(lines[at] ?? '');
  if (!first) return 0;
  const marker = first[2] ?? '-';
  const isOrdered = /\d/.test(marker);
  const items: { checked: boolean | null; children: Node[] }[] = [];
  let next = at;
  while (next < lines.length) {
    const found = ITEM.exec(lines[next] ?? '');
    if (!found || /\d/.test(found[2] ?? '') !== isOrdered || isRule(lines[next] ?? '')) break;
    const indent = found[0].length;
    const body = [(lines[next] ?? '').slice(indent)];
    next = itemBody(lines, next + 1, Math.min(indent, (found[1]?.length ?? 0) + 4), body, depth);
    const task = /^\[([ xX])\] +/.exec(body[0] ?? '');
    if (task) body[0] = (body[0] ?? '').slice(task[0].length);
    items.push({ checked: task ? task[1] !== ' ' : null, children: blocks(body, depth + 1) });
    while (next < lines.length && !(lines[next] ?? '').trim() && ITEM.test(lines[next + 1] ?? '')) next += 1;
  }
  out.push({ kind: 'list', start: isOrdered ? Number.parseInt(marker, 10) : null, items });
  return next;
}

/** Collects the lines of an item below its first one. */
function itemBody(lines: string[], from: number, indent: number, body: string[], depth: number): number {
  let next = from;
  for (; next < lines.length; next += 1) {
    const line = lines[next] ?? '';
    const spaces = /^[ \t]*/.exec(line)?.[0].replace(/\t/g, '    ').length ?? 0;
    if (!line.trim()) {
      const after = lines[next + 1] ?? '';
      if (!/^( {2,}|\t)/.test(after)) break;
      body.push('');
    } else if (spaces >= Math.min(indent, 2)) {
      body.push(line.replace(/\t/g, '    ').slice(Math.min(indent, spaces)));
    } else if (!ITEM.test(line) && !begins(line, depth) && (body.at(-1) ?? '').trim()) {
      body.push(line);
    } else {
      break;
    }
  }
  return next;
}

/** Whether a line begins something that ends a paragraph. */
function begins(line: string, depth: number): boolean {
  return FENCE.test(line) || HEADING.test(line) || isRule(line) || (depth < MAX_DEPTH && (QUOTE.test(line) || ITEM.test(line)));
}

function table(lines: string[], at: number, out: Node[]): number {
  const [head, line] = [lines[at] ?? '', lines[at + 1] ?? ''];
  if (!head.includes('|') || !isUnderline(line)) return 0;
  const names = cells(head);
  const align = cells(line).map((cell) => {
    const [left, right] = [cell.startsWith(':'), cell.endsWith(':')];
    return left && right ? 'center' : right ? 'right' : left ? 'left' : null;
  });
  if (names.length !== align.length) return 0;
  const rows: Inline[][][] = [];
  let next = at + 2;
  for (; next < lines.length && (lines[next] ?? '').includes('|'); next += 1) {
    // A row has the cells that were written: many short rows below a long head must not become a table larger than its text.
    const row = cells(lines[next] ?? '').slice(0, names.length);
    rows.push(row.map((cell) => parseInline(cell)));
  }
  out.push({ kind: 'table', align, head: names.map((name) => parseInline(name)), rows });
  return next;
}

/** Whether a line is the one below the head of a table: `|---|:-:|`. */
function isUnderline(line: string): boolean {
  if (!line.includes('-')) return false;
  const inner = line.trim().replace(/^\|/, '');
  const columns = inner.split('|');
  if (columns.length < 2) return false;
  if (columns.at(-1) === '') columns.pop();
  return columns.every((column) => /^:?-+:?$/.test(column.trim()));
}

/** The cells of a row. What is in code or follows a `\\` ends none. */
function cells(line: string): string[] {
  const inner = line.trim();
  const found: string[] = [];
  let from = inner.startsWith('|') ? 1 : 0;
  const lastTick = inner.lastIndexOf('`');
  const add = (end: number) => found.push(inner.slice(from, end).trim().replaceAll('\\|', '|'));
  for (let at = from; at < inner.length; at += 1) {
    const c = inner[at];
    if (c === '\\') at += 1;
    else if (c === '`' && at < lastTick) at = inner.indexOf('`', at + 1);
    else if (c === '|') {
      add(at);
      from = at + 1;
    }
  }
  // A mark at the end closes the last one.
  if (from < inner.length) add(inner.length);
  return found;
}

function indented(lines: string[], at: number, out: Node[]): number {
  if (!/^( {4}|\t)/.test(lines[at] ?? '')) return 0;
  const body: string[] = [];
  let next = at;
  for (; next < lines.length && (/^( {4}|\t)/.test(lines[next] ?? '') || !(lines[next] ?? '').trim()); next += 1) {
    body.push((lines[next] ?? '').replace(/^( {4}|\t)/, ''));
  }
  out.push({ kind: 'code', language: '', text: body.join('\n').trimEnd() });
  return next;
}

function paragraph(lines: string[], at: number, out: Node[], depth: number): number {
  const body = [(lines[at] ?? '').trimStart()];
  let next = at + 1;
  for (; next < lines.length; next += 1) {
    const line = lines[next] ?? '';
    if (!line.trim() || begins(line, depth)) break;
    if (line.includes('|') && isUnderline(lines[next + 1] ?? '')) break;
    body.push(line.trimStart());
  }
  out.push({ kind: 'paragraph', children: parseInline(body.join('\n').trimEnd()) });
  return next;
}
