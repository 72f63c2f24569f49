// Markdown of models: blocks. Text in, a tree out. HTML in it is text.
//
// A text that is still coming is read as if it ended here, so that an open fence is already code; `chunks` cuts it where nothing that
// comes later can change what is before, so that only its last piece is read again for every word.

import { type Inline, parseInline } from './inline';

export type Node =
  | { kind: 'heading'; level: number; children: Inline[] }
  | { kind: 'paragraph'; children: Inline[] }
  | { kind: 'code'; language: string; text: string }
  | { kind: 'quote'; children: Node[] }
  | { kind: 'list'; start: number | null; items: { checked: boolean | null; children: Node[] }[] }
  | { kind: 'table'; align: ('left' | 'right' | 'center' | null)[]; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?: {1,4}(?=\S)| *$|\t)/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const TABLE = /^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?$/;
/** Deeper nesting is shown flat. */
const MAX_DEPTH = 8;

/** Cuts a text into pieces that can be read apart. */
export function chunks(text: string): string[] {
  const pieces: string[] = [];
  let lines: string[] = [];
  let fence: string | null = null;
  let wasBlank = false;
  for (const line of text.split('\n')) {
    const isBlank = fence === null && !line.trim();
    if (wasBlank && !isBlank && fence === null && lines.some((one) => one.trim())) {
      const isList = ITEM.test(lines.find((one) => one.trim()) ?? '');
      const goesOn = /^( {2,}|\t)/.test(line) || (isList && ITEM.test(line));
      if (!goesOn) {
        pieces.push(lines.join('\n'));
        lines = [];
      }
    }
    fence = fenceAfter(fence, line);
    lines.push(line);
    wasBlank = isBlank;
  }
  if (lines.some((one) => one.trim())) pieces.push(lines.join('\n'));
  return pieces;
}

function fenceAfter(fence: string | null, line: string): string | null {
  if (fence === null) {
    const opened = /^\s*(`{3,}|~{3,})([^`]*)$/.exec(line)?.[1];
    return opened ?? null;
  }
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
  const indent = /^ */.exec(lines[at] ?? '')?.[0].length ?? 0;
  const body: string[] = [];
  let next = at + 1;
  for (; next < lines.length; next += 1) {
    const line = lines[next] ?? '';
    const close = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line)?.[1];
    if (close && close[0] === mark[0] && close.length >= mark.length) {
      next += 1;
      break;
    }
    body.push(line.replace(new RegExp(`^ {0,${indent}}`), ''));
  }
  out.push({ kind: 'code', language: (open[2] ?? '').trim().split(/[\s,{]/)[0]?.toLowerCase() ?? '', text: body.join('\n') });
  return next;
}

function heading(line: string, at: number, out: Node[]): number {
  const found = HEADING.exec(line);
  if (!found) return 0;
  out.push({ kind: 'heading', level: found[1]?.length ?? 1, children: parseInline(found[2] ?? '') });
  return at + 1;
}

function rule(line: string, at: number, out: Node[]): number {
  if (!RULE.test(line)) return 0;
  out.push({ kind: 'rule' });
  return at + 1;
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
    if (!found || /\d/.test(found[2] ?? '') !== isOrdered || RULE.test(lines[next] ?? '')) break;
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
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || (depth < MAX_DEPTH && (QUOTE.test(line) || ITEM.test(line)));
}

function table(lines: string[], at: number, out: Node[]): number {
  const [head, line] = [lines[at] ?? '', lines[at + 1] ?? ''];
  if (!head.includes('|') || !line.includes('-') || !TABLE.test(line)) return 0;
  const names = cells(head);
  const align = cells(line).map((cell) => {
    const [left, right] = [cell.startsWith(':'), cell.endsWith(':')];
    return left && right ? 'center' : right ? 'right' : left ? 'left' : null;
  });
  if (names.length !== align.length) return 0;
  const rows: Inline[][][] = [];
  let next = at + 2;
  for (; next < lines.length && (lines[next] ?? '').includes('|'); next += 1) {
    const row = cells(lines[next] ?? '').map((cell) => parseInline(cell));
    rows.push(names.map((_, column) => row[column] ?? []));
  }
  out.push({ kind: 'table', align, head: names.map((name) => parseInline(name)), rows });
  return next;
}

function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return (inner.match(/(?:`[^`]*`|\\.|[^|])+|(?=\|\|)|(?<=\|)$/g) ?? []).map((cell) => cell.trim().replace(/\\\|/g, '|'));
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
    if (line.includes('|') && TABLE.test(lines[next + 1] ?? '')) break;
    body.push(line.trimStart());
  }
  out.push({ kind: 'paragraph', children: parseInline(body.join('\n').trimEnd()) });
  return next;
}
