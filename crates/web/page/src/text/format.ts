// Numbers, times and paths as text, the same as in the terminal.

import type { Bytes, Part, PlannedFile, RewindDocument, Rule } from '../contract';

/** `1 file`, `2 files`. */
export function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** Each once, with how often it is there: `edit a.rs ×2`. */
export function counted(texts: string[]): string[] {
  const times = new Map<string, number>();
  for (const text of texts) times.set(text, (times.get(text) ?? 0) + 1);
  return [...times].map(([text, number]) => (number === 1 ? text : `${text} ×${number}`));
}

/** `340`, `1.2k`, `200k`, `1.0M`. */
export function tokens(number: number): string {
  if (number < 1_000) return String(number);
  if (number < 10_000) return `${Math.floor(number / 1_000)}.${Math.floor((number % 1_000) / 100)}k`;
  if (number < 1_000_000) return `${Math.floor(number / 1_000)}k`;
  return `${Math.floor(number / 1_000_000)}.${Math.floor((number % 1_000_000) / 100_000)}M`;
}

/** `12 s`, `3 min 05 s`. */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}

/** `12 kB`, `3.4 MB`. */
export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [value, at] = [bytes, 0];
  while (value >= 1_000 && at < units.length - 1) {
    value /= 1_000;
    at += 1;
  }
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}

/** `now`, `5 min ago`, `3 h ago`, `2 d ago`. */
export function age(at: number, now: number): string {
  const minutes = Math.floor((now - at) / 60_000);
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return `${Math.floor(minutes / 1_440)} d ago`;
}

/** A path for people, as the command line writes it: in quotes, with escapes, if anything in it is not plain to see. */
export function pathText(path: Bytes): string {
  if (typeof path === 'string') return ODD.test(path) ? quoted(new TextEncoder().encode(path)) : path;
  try {
    return quoted(Uint8Array.from(atob(path.bytes), (c) => c.charCodeAt(0)));
  } catch {
    return '(a name that cannot be shown)';
  }
}

/** What makes a name be quoted: controls, what changes the direction of text or is not seen, odd blanks, and the quotes' own characters. */
const ODD = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}"\\]|[^\P{Zs} ]|^ | $/u;
const ESCAPES: Record<number, string> = { 7: '\\a', 8: '\\b', 9: '\\t', 10: '\\n', 11: '\\v', 12: '\\f', 13: '\\r', 34: '\\"', 92: '\\\\' };

function quoted(bytes: Uint8Array): string {
  const one = (byte: number) =>
    ESCAPES[byte] ?? (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, '0')}`);
  return `"${Array.from(bytes, one).join('')}"`;
}

/** A path as a key. */
export function pathKey(path: Bytes): string {
  return typeof path === 'string' ? path : `\0${path.bytes}`;
}

const UNSEEN = '\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u180e\\u3164\\uffa0\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff';
const NO_LINE = new RegExp(`[\\u0000-\\u001f${UNSEEN}]`, 'g');
const NO_LINES = new RegExp(`[\\u0000-\\u0008\\u000b-\\u001f${UNSEEN}]`, 'g');

/** One line, without control characters or marks that change the direction of text or are not seen. */
export function clean(text: string): string {
  return text.replace(NO_LINE, '\ufffd');
}

/** The same for several lines. */
export function cleanLines(text: string): string {
  return text.replace(NO_LINES, '\ufffd');
}

/** Output of a program: without the sequences that colour terminals, and with the last state of a line that was written over. */
export function plainOutput(text: string): string {
  const bare = text.replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g, '');
  return bare.replace(/\r\n/g, '\n').replace(/^.*\r(?=[^\n])/gm, '');
}

/** `text` without those of `marks` at its end. */
export function withoutEnd(text: string, marks: string): string {
  let end = text.length;
  while (end > 0 && marks.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** The first two lines of a thought in which something is said, as one line, without the marks around them. */
export function firstWords(text: string): string {
  const found: string[] = [];
  for (let at = 0; at < text.length && found.length < 2; ) {
    const newline = text.indexOf('\n', at);
    const end = newline < 0 ? text.length : newline;
    const line = withoutEnd(text.slice(at, end).replace(/^[*#\s]+/, '').trimEnd(), '*# \t').trimEnd();
    if (line) found.push(line);
    at = end + 1;
  }
  return found.join(' · ');
}

/** A block in brackets. */
export function partName(part: Part): string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'paste':
      return `[pasted ${count(lineCount(part.text), 'line', 'lines')}]`;
    case 'file':
      return `[file ${pathText(part.path)}]`;
    case 'image':
      return `[image ${part.media_type.replace(/^image\//, '')}]`;
  }
}

export function lineCount(text: string): number {
  return text === '' ? 0 : text.replace(/\n$/, '').split('\n').length;
}

/** `2 files changed, 1 added`; nothing if there are none. The signs + and − are for lines. */
export function filesChanged({ added, modified, deleted }: { added: number; modified: number; deleted: number }): string {
  const some = ([[modified, 'changed'], [added, 'added'], [deleted, 'deleted']] as const).filter(([number]) => number > 0);
  return some.map(([number, word], at) => `${at === 0 ? count(number, 'file', 'files') : number} ${word}`).join(', ');
}

/** A rule in words: `bash: npm test`. */
export function ruleText(rule: Rule): string {
  return rule.prefix ? `${rule.tool}: ${rule.prefix}` : rule.tool;
}

/** What is done to a path, in the words for before and after. */
export type Action = 'restore' | 'recreate' | 'delete' | 'mode';
const ACTIONS: [Action, does: string, done: string][] = [
  ['restore', 'restores', 'restored'],
  ['recreate', 'recreates', 'recreated'],
  ['delete', 'deletes', 'deleted'],
  ['mode', 'resets permissions of', 'reset to the old permissions'],
];

/** `restored`, `deleted`; of an action that is not known, its own name. */
export function actionDone(action: string | null): string {
  return ACTIONS.find(([one]) => one === action)?.[2] ?? action ?? 'changed';
}

/** The files of a plan that change. A directory that comes or goes with what is in it is none. */
export function changedFiles(files: PlannedFile[]): PlannedFile[] {
  const changed = files.filter((file) => file.action !== 'unchanged');
  const parents = new Set<string>();
  for (const { path, action } of changed) {
    if (typeof path !== 'string') continue;
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) parents.add(`${action}:${path.slice(0, at)}`);
  }
  const isFilled = ({ path, action }: PlannedFile) => (action === 'delete' || action === 'recreate') && parents.has(`${action}:${path as string}`);
  return changed.filter((file) => !isFilled(file));
}

/** What a plan would do to the files: `restores 2 files, deletes 1`; nothing if it changes none. Conflicts are not among them. */
export function willDo({ files, conflicts }: Pick<RewindDocument, 'files' | 'conflicts'>): string {
  const open = new Set(conflicts.map((one) => pathKey(one.path)));
  const all = changedFiles(files).filter((file) => !open.has(pathKey(file.path)));
  const said: string[] = [];
  for (const [action, does] of ACTIONS) {
    const number = all.filter((file) => file.action === action).length;
    if (number > 0) said.push(`${does} ${said.length === 0 ? count(number, 'file', 'files') : number}`);
  }
  return said.length === 0 && all.length > 0 ? `changes ${count(all.length, 'file', 'files')}` : said.join(', ');
}

/** What became of the files: `2 files restored, 1 deleted, 1 merged, 1 kept as it is`. */
export function inFiles(document: RewindDocument): string {
  const merged = new Set(document.conflicts.filter((one) => one.choice === 'merge').map((one) => pathKey(one.path)));
  const all = changedFiles(document.files);
  const done = all.filter((file) => file.status === 'done' || file.status === 'displaced');
  const isMerged = (file: PlannedFile) => merged.has(pathKey(file.path));
  const numbers: [number, string][] = ACTIONS.map(([action, , word]) => [done.filter((file) => file.action === action && !isMerged(file)).length, word]);
  const kept = all.filter((file) => file.status === 'kept' || file.status === 'overtaken').length;
  numbers.push([done.filter(isMerged).length, 'merged'], [kept, `kept as ${kept === 1 ? 'it is' : 'they are'}`]);
  numbers.push([all.filter((file) => file.status === 'failed').length, 'FAILED']);
  const some = numbers.filter(([number]) => number > 0);
  if (some.length === 0) return 'no files changed';
  return some.map(([number, word], at) => `${at === 0 ? count(number, 'file', 'files') : number} ${word}`).join(', ');
}

/** The first line of a plan: what its point stands for. `name` is the point: `before 3 “mend add”`, `checkpoint “good”`. */
export function meaning(means: RewindDocument['means'], name: string): string {
  const point = name.replace(/^before (?=\d)/, 'prompt ').replace(/^before /, 'the prompt ');
  if (means === undefined) return '';
  return means === 'session' ? `This session’s changes since ${point}` : `The whole workspace as of ${point}`;
}

/** A path that changed and did not go back, and why, as they are shown. */
export interface Left {
  path: string;
  why: string;
}
export function leftBehind({ not_restored }: RewindDocument): Left[] {
  return (not_restored ?? []).map(({ path, why, text }) => ({ path: pathText(path), why: clean(text ?? why) }));
}

/** An operation by the words of what it is about: `turn “mend add”`, `rewind to before “mend add”`. */
export function operationName(what: string): string {
  const [, kind = '', rest = ''] = /^(\S+) ?([\s\S]*)$/.exec(what) ?? [];
  // Ids are for programs; the words follow them.
  const words = rest.replace(/^[0-9a-f]{8,} (?=before |after |")/, '').replace(/"([^"]*)"/, '“$1”');
  if (kind === 'rewind') return words ? `rewind to ${words}` : kind;
  return !words || words.includes('“') ? `${kind} ${words}`.trim() : `${kind} “${words}”`;
}

/** With a capital at its beginning. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
