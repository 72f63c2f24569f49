import assert from 'node:assert/strict';
import test from 'node:test';

import { outcome } from '../changes';
import type { DiffLine, FileDiff, RewindDocument } from '../contract';
import type { Wanted } from '../store';
import { fits, ofCall } from '../text/edits';
import { noteLine, refusalOf } from '../text/modelNotes';
import { changedParts, marked } from '../text/inlineDiff';
import { filesChanged, leftBehind, meaning, willDo } from '../text/format';

const file = (path: string, action: string, status = 'done') => ({ path, action, status, certainty: null });
const document = (files: ReturnType<typeof file>[], more: Partial<RewindDocument> = {}) =>
  ({ files, conflicts: [], scope: 'both', conversation_moved: null, what: '', ...more }) as unknown as RewindDocument;

test('what a plan does is told by action, without directories and conflicts', () => {
  assert.equal(willDo(document([file('a', 'restore'), file('b', 'restore'), file('c', 'delete'), file('d', 'recreate')])), 'restores 2 files, recreates 1, deletes 1');
  assert.equal(willDo(document([file('tmp', 'delete'), file('tmp/x', 'delete')])), 'deletes 1 file');
  // A file that takes the place of a directory is one.
  assert.equal(willDo(document([file('a', 'restore'), file('a/x', 'delete')])), 'restores 1 file, deletes 1');
  const conflict = { path: 'a', why: 'changed_since', text: '', choices: [], choice: 'stop' as const };
  assert.equal(willDo(document([file('a', 'restore'), file('b', 'unchanged')], { conflicts: [conflict] })), '');
  assert.deepEqual([filesChanged({ added: 0, modified: 1, deleted: 0 }), filesChanged({ added: 2, modified: 0, deleted: 1 })], ['1 file changed', '2 files added, 1 deleted']);
});

test('what was done says which half went back', () => {
  const wanted = (scope: 'both' | 'code' | 'conversation', paths: string[] = []): Wanted => ({ change: { do: 'rewind', entry: 'e', scope, paths }, verb: 'Rewind', name: 'before 2 “x”' });
  const files = [file('a', 'recreate'), file('b', 'delete')];
  assert.equal(outcome(wanted('both'), document(files)), 'Rewound files and conversation to before 2 “x”: 1 file recreated, 1 deleted');
  const code = 'Rewound the files to before 2 “x”: 1 file recreated, 1 deleted. The conversation stays as it is';
  assert.equal(outcome(wanted('code'), document(files, { scope: 'code' })), code);
  // A half that was skipped is not announced as done.
  assert.equal(outcome(wanted('both'), document(files, { conversation_moved: false })), code);
  assert.equal(outcome(wanted('conversation'), document([], { scope: 'conversation' })), 'Rewound the conversation to before 2 “x”. Files stay as they are');
  assert.equal(outcome(wanted('code', ['b']), document([file('b', 'delete')], { scope: 'code' })), 'b deleted');
  assert.equal(outcome(wanted('code', ['b']), document([file('b', 'delete', 'kept')], { scope: 'code' })), 'b: 1 file kept as it is');
  assert.equal(outcome({ ...wanted('both'), change: { do: 'undo' }, verb: 'Undo' }, document(files, { what: 'turn mend' })), 'Undid turn “mend”: 1 file recreated, 1 deleted');
});

test('the first line of a plan says what its point stands for', () => {
  assert.equal(meaning('session', 'before 2 “mend add”'), 'This session’s changes since prompt 2 “mend add”');
  assert.equal(meaning('session', 'before “make b”'), 'This session’s changes since the prompt “make b”');
  assert.equal(meaning('workspace', 'checkpoint “good”'), 'The whole workspace as of checkpoint “good”');
  // A server that does not say it is not spoken for.
  assert.equal(meaning(undefined, 'checkpoint “good”'), '');
});

test('each path that did not go back is named with why', () => {
  const not_restored = [{ path: 'big.dat', why: 'too_large', text: 'larger than 64 MiB' }, { path: { bytes: 'YQBi/w==' }, why: 'a pipe\u202e' }];
  assert.deepEqual(leftBehind(document([], { not_restored })), [
    { path: 'big.dat', why: 'larger than 64 MiB' },
    { path: '"a\\000b\\377"', why: 'a pipe\ufffd' },
  ]);
  assert.deepEqual(leftBehind(document([])), []);
});

test('what is written for the model is told in a line', () => {
  assert.equal(noteLine(['a'], 'The user …'), '1 file is not as the model last saw it: a');
  assert.equal(noteLine(['a', 'b', 'c', 'd', 'e'], ''), '5 files are not as the model last saw them: a, b, c and 2 more');
  assert.equal(noteLine([], 'These jobs ended.\nx'), 'Note to the model: These jobs ended.');
  const no = 'The user did not allow this call. Do not try it another way; ask what to do instead.';
  assert.equal(refusalOf('denied', no), 'You said no');
  assert.equal(refusalOf('denied', `${no} They say: never push`), 'You said no: never push');
  assert.equal(refusalOf('denied', 'a rule forbids it'), null);
  assert.equal(refusalOf('interrupted', 'The user stopped this before it began.'), 'not run');
  assert.equal(refusalOf('interrupted', 'half an output'), null);
});

const lines = (text: string): DiffLine[] =>
  text.split('\n').map((line) => ({ kind: line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same', text: line.slice(1) }));

test('the part of a line that changed is marked in words', () => {
  const parts = (text: string) => [...changedParts(lines(text))].map(([at, [from, to]]) => `${at}:${lines(text)[at]?.text.slice(from, to)}`);
  assert.deepEqual(parts(' a\n-port = 3000;\n+port = 8080;\n b'), ['1:3000', '2:8080']);
  assert.deepEqual(parts('-f(a)\n-g(b)\n+f(a, c)\n+g(d)'), ['0:', '2:, c', '1:b', '3:d']);
  // Another number of lines, or another line altogether.
  assert.deepEqual(parts('-a b c\n+a b d\n+e'), []);
  assert.deepEqual(parts('-one thing\n+quite another'), []);
  const pieces = marked([['k', 'let'], [null, ' x = 1']], [2, 5]);
  assert.deepEqual(pieces, [[['k', 'le'], false], [['k', 't'], true], [[null, ' x'], true], [[null, ' = 1'], false]]);
});

test('a difference of the session is shown for a call only if it can be that call’s', () => {
  const whole = (path: string, text: string): FileDiff => ({ path, added: 1, removed: 1, hunks: [{ start: [1, 1], lines: lines(text) }] });
  const edit = ofCall('edit_file', '{"path":"/w/a.js","old":"3000","new":"8080"}', undefined);
  assert.ok(edit && fits(whole('a.js', '-port = 3000;\n+port = 8080;'), edit));
  assert.ok(edit && !fits(whole('b.js', '-port = 3000;\n+port = 8080;'), edit));
  assert.ok(edit && !fits(whole('a.js', '-port = 1;\n+port = 3000;'), edit));
  const write = ofCall('write_file', '{"path":"./a.js","content":"x\\ny\\n"}', undefined);
  assert.ok(write && fits(whole('a.js', ' x\n-z\n+y'), write));
  assert.ok(write && !fits(whole('a.js', ' x\n-y\n+z'), write));
});
