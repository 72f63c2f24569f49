// Records what a real session tells, for the tests of the fold: a view, all events after it, and the view in the end.
//
//   RETAKE_BIN=… RETAKE_MODEL_BIN=… RETAKE_BRIDGE=1 node tools/record.mjs
import { writeFileSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Scene } from '../tests/scene.mjs';

const scene = await Scene.start(null, {
  files: { 'a.txt': 'one\n', 'b.txt': 'two\n' },
  answers: [
    { thinks: 'I look.', says: 'I will look.', calls: [['read_file', { path: 'a.txt' }]] },
    { calls: [['edit_file', { path: 'a.txt', old: 'one', new: 'ONE' }], ['bash', { command: 'for i in 1 2 3; do echo line $i é 日本; sleep 0.1; done' }]] },
    { says: 'Done: **ONE**.' },
    { calls: [['todo', { items: [{ text: 'one', state: 'done' }, { text: 'two', state: 'active' }] }], ['bash', { command: 'head -c 36000 /dev/zero | tr "\\0" é; sleep 0.2; echo end' }]] },
    { says: 'Much output.' },
    { says: 'never', pause_ms: 3000 },
    { says: 'A summary.' },
  ],
});
const created = await (await fetch(new URL('/api/sessions', scene.url), { method: 'POST', body: '{}' })).json();
const dir = join(scene.env.XDG_RUNTIME_DIR, 'retake');
const socket = connect(join(dir, readdirSync(dir).find((name) => name.startsWith(created.session))));
const events = [];
const waiting = new Map();
let next = 0;
createInterface({ input: socket }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.event) events.push(message.event);
  else waiting.get(message.response?.id)?.(message.response);
});
const ask = (command) =>
  new Promise((resolve) => {
    const id = String((next += 1));
    waiting.set(id, resolve);
    socket.write(`${JSON.stringify({ id, command })}\n`);
  });
const until = async (is) => {
  for (let tries = 0; tries < 200; tries += 1) {
    const found = events.find(is);
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error('it does not come');
};
const ended = (count) => until(() => events.filter((event) => event.type === 'turn_ended').length >= count);
const answered = new Set();
setInterval(() => {
  for (const { question } of events.filter((event) => event.type === 'permission_asked')) {
    if (answered.has(question.call)) continue;
    answered.add(question.call);
    void ask({ type: 'answer', call: question.call, answer: question.rule ? { type: 'allow_always', rule: question.rule } : { type: 'allow' } });
  }
}, 20);

const text = (words) => ({ type: 'prompt', parts: [{ type: 'text', text: words }] });
const before = (await ask({ type: 'attach' })).ok.view;
const first = (await ask(text('shout'))).ok.prompt;
await ended(1);
await ask(text('print much'));
await ended(2);
await ask(text('hang'));
await ask(text('held meanwhile'));
await ask({ type: 'interrupt' });
await ended(3);
const change = { do: 'rewind', entry: first, scope: 'both' };
await ask({ type: 'apply', change });
await ask({ type: 'apply', change: { do: 'undo' } });
await ask({ type: 'draft', parts: [{ type: 'text', text: 'half' }] });
await ask({ type: 'summarise', extent: { part: 'all' } });
await ask({ type: 'clear' });
await ask({ type: 'model', model: 'openai/other' });
await new Promise((resolve) => setTimeout(resolve, 300));
const after = (await ask({ type: 'attach' })).ok.view;
const upTo = events.filter((event) => event.seq <= after.seq);
writeFileSync(new URL('../src/tests/streams/life.json', import.meta.url), `${JSON.stringify({ before, events: upTo, after })}\n`);
console.log(upTo.length, [...new Set(upTo.map((event) => event.type))].join(' '));
await scene.end();
process.exit(0);
