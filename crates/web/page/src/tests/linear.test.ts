// Text of models is drawn again with every look at a session: none may take more than a few looks at each of its characters.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Blocks, typing } from '../composerText';
import { highlight } from '../text/highlight';
import { type Node, parse, Pieces } from '../text/markdown';
import { firstWords, plainOutput } from '../text/format';

/**
 * Work that grows like the text takes milliseconds for the longest of these, work that grows like its square minutes: the bound is far from
 * both. It is time of this process alone, so that a busy machine does not matter, and it stops at the first length that is too much.
 */
const LENGTHS = [1_000, 4_000, 16_000, 64_000, 256_000];
const MOST_MS = 3_000;

function isLinear(name: string, make: (length: number) => string, read: (text: string) => unknown): void {
  for (const length of LENGTHS) {
    const text = make(length);
    const from = process.cpuUsage();
    read(text);
    const ms = process.cpuUsage(from).user / 1_000;
    assert.ok(ms < MOST_MS, `${name}: ${text.length} characters took ${Math.round(ms)} ms`);
  }
}

/** `first`, then `piece` until it is long enough, then `last`. */
const filled =
  (piece: string, first = '', last = '') =>
  (length: number) =>
    first + piece.repeat(Math.ceil(length / piece.length)) + last;

const HOSTILE: [string, string?, string?][] = [
  [' ', '#', 'x\u2028x'],
  ['# ', '# a ', ' x'],
  [' ', 'a|b\n', '-x'],
  [' :-', 'a|b\n', 'x'],
  [' ', '[a](', 'x y)'],
  [' ', '[a](x', 'y)'],
  ['[a](', '', ')'],
  ['[a](a', '', ' <)'],
  ['[a](', '', `${' '.repeat(1_000)}x y)`],
  ['[x ', '', '](a)'],
  ['.', 'http://', 'x'],
  ['https://a', '', `${'.'.repeat(9_000)}x`],
  ['http://.', '', 'x'],
  ['<http://'],
  ['some line of a log\n'],
  ['a  \n'],
  [' ', 'a', 'b\nc'],
  ['h'],
  ['\\*'],
  ['*a '],
  ['**a *b '],
  ['***a'],
  ['_a'],
  ['**a ', '', ' **'.repeat(5_000)],
  ['- a\n'],
  ['- '],
  ['- ', '', 'x'],
  [' ', '-', '- -x'],
  ['1. a\n\n'],
  [`${'>'.repeat(20)} a\n`],
  ['> '],
  ['~', '', '`'],
  [' ', '```', '`'],
  ['~~~ `\n'],
  ['```\n'],
  ['`a|', 'a|b\n-|-\n'],
  ['|', 'a|b\n-|-\n'],
  ['|\n', `${'a|'.repeat(2_000)}\n${'-|'.repeat(2_000)}\n`],
  ['\n'],
  ['\n \n'],
  ['    a\n'],
  ['\t'],
];

test('markdown takes no more than a few looks at each character', () => {
  for (const [piece, first, last] of HOSTILE) {
    const name = JSON.stringify([first?.slice(0, 20), piece, last?.slice(0, 20)]);
    isLinear(name, filled(piece, first, last), (text) => new Pieces().take(text));
    isLinear(name, filled(piece, first, last), parse);
  }
  const runs = (length: number) => Array.from({ length: Math.sqrt(2 * length) }, (_, at) => '`'.repeat(at + 1)).join('a');
  isLinear('longer and longer runs of `', runs, parse);
});

test('a tree is no larger than its text', () => {
  const size = (node: unknown): number =>
    Array.isArray(node) ? 1 + node.reduce((sum: number, one) => sum + size(one), 0) : typeof node === 'object' && node ? 1 + Object.values(node).reduce((sum: number, one) => sum + size(one), 0) : 1;
  for (const [piece, first, last] of HOSTILE) {
    const text = filled(piece, first, last)(20_000);
    const tree: Node[] = parse(text);
    assert.ok(size(tree) < 8 * text.length + 100, JSON.stringify([first, piece, last]).slice(0, 80));
  }
});

test('colours, outputs, thoughts and drafts take no more than a few looks at each character', () => {
  for (const language of ['rs', 'ts', 'py', 'sql', 'html', 'css', 'json', 'diff', 'nosuch']) {
    for (const piece of ['"', "'", '`', '/*', '#', '--', '<!--', '"""', "'\\a", '\\', 'A', '1.', '$', '\n', '_']) {
      isLinear(`${language} ${piece}`, filled(piece), (text) => highlight(text, language));
    }
  }
  for (const piece of ['\u001b[', '\u001b]', '\u001b[0', '\r', 'a\r', '\u2028', ' ', '\u001b']) isLinear(`output ${piece}`, filled(piece, 'a', 'b'), plainOutput);
  for (const piece of ['*', '# ', '*\n', ' ']) isLinear(`thought ${piece}`, filled(piece, 'x', 'x'), firstWords);
  for (const piece of ['\n', '[file ', 'a', ' ', '[pasted 1', '[image a']) {
    isLinear(`draft ${piece}`, filled(piece, 'x', 'x'), (text) => new Blocks().parts(text));
    isLinear(`typed ${piece}`, filled(piece, 'x', 'x y'), (text) => typing(text, text.length - 2));
  }
});
