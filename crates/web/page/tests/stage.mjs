// A session that is played: a server that tells one view, then what the test wants, and remembers what it was asked.
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { witnessOf } from './case.mjs';
import { theBrowser } from './scene.mjs';

const dist = new URL('../dist', import.meta.url).pathname;
const KINDS = { js: 'text/javascript', css: 'text/css', html: 'text/html', svg: 'image/svg+xml' };

/**
 * `view` is what differs from that of an idle session without entries; `replies` are answers by the type of the command. `seqs` are the
 * events that answers say to come after, by the type of the command: how many are told by then.
 */
export async function play(t, { view = {}, width = 1280, height = 800, dark = false, touch = false, replies = {}, seqs = {}, stored = {} } = {}) {
  const whole = { seq: 1, session: 'aaaa', workspace: '/w', model: 'x/m', entries: [], draft: [], state: 'idle', coming: { text: '', thinking: '' }, calls: [], questions: [], held: 0, jobs: [], ...view };
  const streams = new Set();
  const commands = [];
  /** The last request of each type of command. */
  const ids = {};
  let seq = 1;
  let isCut = false;
  const tell = (kind) => {
    seq += 1;
    for (const stream of streams) stream.write(`event: event\nid: ${seq}\ndata: ${JSON.stringify({ seq, ...kind })}\n\n`);
  };
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, 'http://x').pathname;
    if (path.endsWith('/events')) {
      if (isCut) return void response.destroy();
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write(`event: view\nid: 1\ndata: ${JSON.stringify(whole)}\n\n`);
      return void streams.add(response);
    }
    if (path === '/api/sessions') return void response.end(JSON.stringify({ workspace: '/w', sessions: [{ session: 'aaaa', title: 'played', at: 0, prompts: 1, live: true, forked_from: null, draft: null }] }));
    if (path.startsWith('/api')) {
      let text = '';
      for await (const bytes of request) text += bytes;
      const { id, command } = JSON.parse(text);
      ids[command.type] = id;
      if (command.type !== 'store') commands.push(command);
      return void response.end(JSON.stringify({ id, ok: replies[command.type] ?? (command.type === 'store' ? { type: 'store', bytes: 1, budget: 2 } : { type: 'done' }), seq: 1 + (seqs[command.type] ?? 0) }));
    }
    const file = `${dist}${path === '/' ? '/index.html' : path}`;
    if (!existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { 'Content-Type': KINDS[file.split('.').at(-1)] });
    return void response.end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const context = await (await theBrowser()).newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', hasTouch: touch, isMobile: touch });
  const page = await context.newPage();
  witnessOf(t).page(page);
  page.setDefaultTimeout(30_000);
  await page.addInitScript((all) => Object.entries(all).forEach(([key, value]) => sessionStorage.setItem(key, value)), stored);
  const problems = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  t.after(async () => {
    await context.close();
    streams.forEach((stream) => stream.destroy());
    server.close();
  });
  const begun = Date.now();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.locator('.transcript [data-key=live]').waitFor();
  /** Ends the streams, and answers no other. */
  const cut = () => {
    isCut = true;
    streams.forEach((stream) => stream.destroy());
  };
  return { page, tell, cut, commands, ids, problems, opened: Date.now() - begun };
}

/** An entry of a played session. */
export function entry(number, body) {
  return { id: number.toString(16).padStart(20, '0'), parent: number > 1 ? (number - 1).toString(16).padStart(20, '0') : null, at: 1_700_000_000_000 + number * 1_000, ...body };
}
export const prompted = (number, text) => entry(number, { type: 'prompt', parts: [{ type: 'text', text }] });
export const replied = (number, text) => entry(number, { type: 'reply', model: 'm', usage: { input: 10, output: 5 }, stop: 'done', blocks: [{ type: 'text', text }] });
