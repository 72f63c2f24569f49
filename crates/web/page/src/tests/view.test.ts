import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import type { Entry, Event, View } from '../contract';
import { totalsOf, takeEntry } from '../totals';
import { apply } from '../view';

interface Recorded {
  before: View;
  events: Event[];
  after: View;
}
const recorded = (): Recorded => JSON.parse(readFileSync('src/tests/streams/life.json', 'utf8')) as Recorded;
/** What JSON makes of it: fields that are left out, and those that are null, are the same. */
const plain = (view: View) => JSON.parse(JSON.stringify({ ...view, window: view.window ?? null, baseline: view.baseline ?? null })) as View;

test('a view folded from recorded events is the one that the session has', () => {
  const { before, events, after } = recorded();
  for (const event of events) apply(before, event);
  assert.deepEqual(plain(before), plain(after));
});

test('an event that was seen changes nothing, and a stream that begins again is the same', () => {
  const { before, events, after } = recorded();
  for (const event of events.slice(0, 100)) apply(before, event);
  for (const event of events) apply(before, event);
  assert.deepEqual(plain(before), plain(after));
  assert.equal(apply(before, events[0] as Event), false);
});

test('facts kept entry by entry are those of the whole view', () => {
  const { before, events } = recorded();
  let facts = totalsOf(before);
  for (const event of events) {
    apply(before, event);
    if (event.type === 'appended') takeEntry(facts, event.entry, before.entries.length - 1);
    if (event.type === 'head_moved') facts = totalsOf(before);
  }
  assert.deepEqual(facts, totalsOf(before));
  assert.equal(facts.todos.length, totalsOf(before).todos.length);
});

const view = (): View => ({
  seq: 0,
  session: 's',
  workspace: '/w',
  model: 'm',
  entries: [],
  draft: [],
  state: 'idle',
  coming: { text: '', thinking: '' },
  calls: [],
  questions: [],
  held: 0,
  jobs: [],
});

test('a head that moves to nowhere leaves what is added', () => {
  const one = view();
  const entry = (id: string) => ({ id, parent: null, at: 0, type: 'cleared' }) as const;
  apply(one, { seq: 1, type: 'appended', entry: entry('a') });
  apply(one, { seq: 2, type: 'appended', entry: entry('b') });
  apply(one, { seq: 3, type: 'head_moved', operation: null, keep: 'a', added: [entry('c')] });
  assert.deepEqual(one.entries.map((each) => each.id), ['a', 'c']);
  apply(one, { seq: 4, type: 'head_moved', operation: null, keep: 'gone', added: [] });
  assert.deepEqual(one.entries, []);
});

test('the end of an output is cut between characters', () => {
  const one = view();
  apply(one, { seq: 1, type: 'call_started', call: 'c', title: 't' });
  apply(one, { seq: 2, type: 'call_output', call: 'c', text: 'x' + 'é'.repeat(40_000) });
  const output = one.calls[0]?.output ?? '';
  assert.equal(Buffer.byteLength(output), 64 << 10);
  assert.ok(/^é+$/.test(output));
  apply(one, { seq: 3, type: 'call_output', call: 'c', text: 'x' });
  assert.equal(Buffer.byteLength(one.calls[0]?.output ?? ''), (64 << 10) - 1);
});

test('a turn that has ended has written nothing of the next one', () => {
  const reply = { id: 'b', type: 'reply', blocks: [], model: 'm', usage: { input: 1, output: 40 }, stop: 'done' };
  const entries = [{ id: 'a', type: 'prompt', parts: [] }, reply, { id: 'c', type: 'ended', reason: { why: 'done' } }] as unknown as Entry[];
  const turn = (count: number) => totalsOf({ entries: entries.slice(0, count) } as View).turn;
  assert.deepEqual([turn(1), turn(2), turn(3)], [0, 40, 0]);
});
