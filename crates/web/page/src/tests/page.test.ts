import assert from 'node:assert/strict';
import test from 'node:test';

import type { ConflictFacts, Part, TreePrompt } from '../contract';
import { Blocks, isBlock, joined, toKeep, typing } from '../composerText';
import { Parser } from '../stream';
import { Heights } from '../ui/heights';
import { decide } from '../ui/PlanPanel';
import { treeRows } from '../ui/Timeline';

test('heights are guessed until they are measured, and places follow', () => {
  const heights = new Heights();
  heights.set(['a', 'b', 'c'], [10, 20, 30]);
  assert.deepEqual([0, 1, 2, 3].map((at) => heights.top(at)), [0, 10, 30, 60]);
  assert.equal(heights.measure('b', 1, 100), true);
  assert.equal(heights.measure('b', 1, 100.2), false);
  assert.deepEqual([2, 3].map((at) => heights.top(at)), [110, 140]);
  assert.deepEqual([0, 9, 10, 109, 110, 999].map((at) => heights.at(at)), [0, 0, 1, 1, 2, 2]);
  heights.set(['a', 'b', 'c', 'd'], [10, 20, 30, 5]);
  assert.equal(heights.total(), 145);
  heights.set(['a', 'x'], [10, 1]);
  assert.equal(heights.total(), 11);
  heights.forget();
  heights.set(['a', 'b'], [10, 20]);
  assert.equal(heights.total(), 30);
});

test('only what is near the screen is in the range', () => {
  const heights = new Heights();
  const keys = Array.from({ length: 10_000 }, (_, at) => String(at));
  heights.set(keys, keys.map(() => 50));
  assert.deepEqual(heights.range(100_000, 100_800, 500), [1990, 2027]);
  assert.deepEqual(new Heights().range(0, 100, 100), [0, 0]);
  const started = performance.now();
  for (let at = 0; at < 1_000; at += 1) {
    heights.measure(String(at * 10), at * 10, 60 + (at % 7));
    heights.range(at * 100, at * 100 + 800, 500);
  }
  assert.ok(performance.now() - started < 1_000);
});

test('server-sent events are read from any pieces', () => {
  const text = ': hi\n\nevent: view\ndata: {"a":1}\n\nid: 7\r\nevent: event\r\ndata: x\r\ndata: y\r\n\r\ndata: z\n\nevent: ended\ndata\n\n';
  const whole = [
    ['view', '{"a":1}'],
    ['event', 'x\ny'],
    ['message', 'z'],
    ['ended', ''],
  ];
  for (const step of [1, 2, 3, 7, 1_000]) {
    const seen: string[][] = [];
    const parser = new Parser((name, data) => seen.push([name, data]));
    for (let at = 0; at < text.length; at += step) parser.push(text.slice(at, at + step));
    assert.deepEqual(seen, whole, String(step));
  }
});

test('blocks are marks in the text and become parts again', () => {
  const blocks = new Blocks();
  const paste = { type: 'paste', text: 'a\nb\nc' } as const;
  const image = { type: 'image', media_type: 'image/png', data: 'AA' } as const;
  const text = `see ${blocks.add(paste)} and ${blocks.add(image)}.`;
  assert.equal(text, 'see [pasted 3 lines #1] and [image png #2].');
  assert.deepEqual(blocks.parts(text), [{ type: 'text', text: 'see ' }, paste, { type: 'text', text: ' and ' }, image, { type: 'text', text: '.' }]);
  assert.deepEqual(blocks.parts('[pasted 3 lines #9]'), [{ type: 'text', text: '[pasted 3 lines #9]' }]);
  assert.equal(blocks.markBefore(text, 23), 4);
  assert.equal(blocks.markBefore(text, 22), -1);
  const again = blocks.text([paste, { type: 'text', text: 'x' }]);
  assert.deepEqual(blocks.parts(again), [paste, { type: 'text', text: 'x' }]);
  assert.deepEqual([isBlock('a'), isBlock('a\n'.repeat(9)), isBlock('a'.repeat(500))], [false, true, true]);
});

test('what waits to be said is lost to nobody who leaves, and comes back to nobody who deleted it', () => {
  const text = (said: string): Part[] => (said ? [{ type: 'text', text: said }] : []);
  const keep = (waiting: string, mine: string, known: [string, string] | null) =>
    toKeep(text(waiting), text(mine), known && { draft: text(known[0]), others: text(known[1]) });
  const kept = (draft: string, others: string) => ({ draft: text(draft), others: text(others) });
  assert.deepEqual(keep('', 'mine', null), kept('mine', ''));
  // Somebody else's comes first; it is there once, however often one leaves.
  assert.deepEqual(keep('older', 'mine', null), kept('older\n\nmine', 'older'));
  assert.equal(keep('older\n\nmine', 'mine', ['older\n\nmine', 'older']), null);
  assert.deepEqual(keep('older\n\nmine', 'more', ['older\n\nmine', 'older']), kept('older\n\nmore', 'older'));
  assert.deepEqual(keep('older\n\nmine', '', ['older\n\nmine', 'older']), kept('older', 'older'));
  // What was loaded is edited or deleted, not doubled.
  assert.deepEqual(keep('older', 'older, edited', ['older', '']), kept('older, edited', ''));
  assert.deepEqual(keep('older', '', ['older', '']), kept('', ''));
  assert.equal(keep('older', 'older', null), null);
  assert.equal(keep('older', '', null), null);
  // It has become another one meanwhile.
  assert.deepEqual(keep('newer', 'older, edited', ['older', '']), kept('newer\n\nolder, edited', 'newer'));
  assert.equal(keep('newer', '', ['older', '']), null);
  const image: Part = { type: 'image', media_type: 'image/png', data: 'AA' };
  assert.deepEqual(joined([image], text('a')), [image, ...text('a')]);
});

test('commands and files are completed where they can be', () => {
  assert.deepEqual(typing('/re', 3), { kind: 'command', query: 're', from: 0 });
  assert.deepEqual(typing('see @src/m', 10), { kind: 'file', query: 'src/m', from: 4 });
  assert.equal(typing('me@example.org', 14), null);
  assert.equal(typing('see /etc', 8), null);
});

const conflict = (path: string, choices: ConflictFacts['choices']): ConflictFacts => ({ path, why: 'changed_since', text: '', choices, choice: 'stop' });

test('the safe choice comes first, and what was decided stays decided where it can', () => {
  const first = decide([conflict('a', ['keep', 'overwrite', 'stop'])], new Map());
  assert.deepEqual([...first.values()], [['a', 'keep']]);
  assert.equal(decide([conflict('a', ['keep', 'overwrite', 'stop'])], first), first);
  const merged = new Map(first).set('a', ['a', 'merge']);
  assert.deepEqual(decide([conflict('a', ['keep', 'stop'])], merged).get('a'), ['a', 'keep']);
  assert.equal(decide([], merged), merged);
});

test('what was left behind is beside what is retained', () => {
  const prompt = (id: string, parent: string | null, number: number | null): TreePrompt => ({ id, parent, at: 0, text: id, number, label: null, files: null, forks: [] });
  const rows = treeRows([prompt('a', null, 1), prompt('b', 'a', null), prompt('c', 'b', null), prompt('d', 'a', 2), prompt('e', 'd', 3), prompt('x', 'gone', null)]);
  assert.deepEqual(rows.map((row) => `${row.prompt.id}${row.depth}`), ['e0', 'd0', 'c1', 'b1', 'a0', 'x1']);
  const long = Array.from({ length: 20_000 }, (_, at) => prompt(String(at), at === 0 ? null : String(at - 1), at + 1));
  assert.equal(treeRows(long).length, 20_000);
});
