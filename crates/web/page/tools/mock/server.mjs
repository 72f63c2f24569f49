// A stand-in for `retake serve`, for developing the page: the same API over the sockets of real sessions, which it opens in terminals of
// their own. It guards nothing; it is for this machine and this page only.
//
//   node tools/mock/server.mjs --retake BIN --workspace DIR --base-url URL [--port N]
import { spawn, execFileSync } from 'node:child_process';
import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { createInterface } from 'node:readline';

const option = (name, otherwise) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : process.argv[at + 1];
};
const retake = option('retake', 'retake');
const workspace = option('workspace', process.cwd());
const baseUrl = option('base-url');
const dist = new URL('../../dist/', import.meta.url).pathname;
const sockets = join(process.env.XDG_RUNTIME_DIR ?? '/tmp', 'retake');
const children = new Map();
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const live = () => (existsSync(sockets) ? readdirSync(sockets).filter((name) => name.endsWith('.sock')).map((name) => name.slice(0, -5)) : []);
const answers = (id) =>
  new Promise((resolve) => {
    const socket = connect(join(sockets, `${id}.sock`), () => resolve(true) || socket.end());
    socket.on('error', () => resolve(false));
  });

/** Opens a session in a terminal of its own: a new one for null. */
async function open(id) {
  if (id && (await answers(id))) return id;
  const before = new Set(live());
  const model = baseUrl ? `--model openai/scripted --base-url ${baseUrl}` : '';
  const command = id ? `${retake} resume ${id} ${model}` : `${retake} ${model}`;
  const child = spawn('script', ['-qfc', command, '/dev/null'], { cwd: workspace, stdio: ['pipe', 'ignore', 'ignore'], env: { ...process.env, TERM: 'xterm' } });
  for (let tries = 0; tries < 100; tries += 1) {
    await pause(50);
    const found = id ?? live().find((one) => !before.has(one));
    if (found && (await answers(found))) {
      children.set(found, child);
      return found;
    }
  }
  throw new Error('the session does not open');
}

/** A connection to a session: sends requests, hands over what comes. */
function talk(id, heard, ended) {
  const socket = connect(join(sockets, `${id}.sock`));
  createInterface({ input: socket }).on('line', (line) => heard(JSON.parse(line)));
  socket.on('close', ended);
  socket.on('error', () => {});
  return { send: (request) => socket.write(`${JSON.stringify(request)}\n`), close: () => socket.destroy() };
}

function ask(id, request) {
  return new Promise((resolve) => {
    const link = talk(
      id,
      (message) => {
        if (message.response?.id !== request.id) return;
        resolve(message.response);
        link.close();
      },
      () => resolve({ id: request.id, refused: { reason: 'ended', message: 'the session has ended' } }),
    );
    link.send(request);
  });
}

function json(response, status, value) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  response.end(JSON.stringify(value));
}

async function bodyOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString() || '{}');
}

async function events(request, response, id) {
  await open(id);
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  const tell = (name, data, seq) => response.write(`event: ${name}\n${seq === undefined ? '' : `id: ${seq}\n`}data: ${JSON.stringify(data)}\n\n`);
  const from = request.headers['last-event-id'];
  const link = talk(
    id,
    (message) => {
      if (message === 'lagged') return response.end();
      if (message === 'ended') return tell('ended', {});
      if (message.response?.ok?.type === 'view') return tell('view', message.response.ok.view, message.response.ok.view.seq);
      if (message.event) return tell('event', message.event, message.event.seq);
      return undefined;
    },
    () => response.end(),
  );
  link.send({ id: 'attach', command: { type: 'attach', from: from ? Number(from) : null } });
  const beat = setInterval(() => response.write(': here\n\n'), 15_000);
  response.on('close', () => {
    clearInterval(beat);
    link.close();
  });
}

async function api(request, response, path) {
  if (path === '/api/sessions' && request.method === 'GET') {
    const out = JSON.parse(execFileSync(retake, ['sessions', '--json'], { cwd: workspace }).toString());
    const open_ = new Set(live());
    const sessions = out.sessions.map((one) => ({
      session: one.id,
      title: one.title,
      at: Date.parse(one.last ?? one.at),
      prompts: one.prompts,
      live: open_.has(one.id),
      forked_from: one.forked_from?.session ?? null,
      draft: one.draft,
    }));
    return json(response, 200, { sessions, workspace });
  }
  if (path === '/api/sessions' && request.method === 'POST') return json(response, 200, { session: await open(null) });
  const [, id, rest] = /^\/api\/sessions\/([0-9a-f]+)(\/\w+)?$/.exec(path) ?? [];
  if (!id) return json(response, 404, { error: { message: 'there is no such thing', hint: null } });
  if (request.method === 'DELETE') {
    await ask(id, { id: 'close', command: { type: 'close' } });
    children.get(id)?.kill();
    await pause(300);
    execFileSync(retake, ['sessions', 'rm', id, '--yes'], { cwd: workspace });
    return json(response, 200, {});
  }
  if (rest === '/events') return events(request, response, id);
  if (rest === '/commands' && request.method === 'POST') {
    const wanted = await bodyOf(request);
    await open(id);
    return json(response, 200, await ask(id, wanted));
  }
  return json(response, 404, { error: { message: 'there is no such thing', hint: null } });
}

const KINDS = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
function page(response, path) {
  const file = normalize(join(dist, path === '/' ? 'index.html' : path));
  if (!file.startsWith(dist) || !existsSync(file) || !statSync(file).isFile()) return json(response, 404, {});
  response.writeHead(200, { 'Content-Type': KINDS[extname(file)] ?? 'application/octet-stream', 'Content-Security-Policy': CSP });
  return createReadStream(file).pipe(response);
}

const server = createServer((request, response) => {
  const path = new URL(request.url, 'http://localhost').pathname;
  if (!path.startsWith('/api/')) return page(response, path);
  return api(request, response, path).catch((error) => json(response, 500, { error: { message: String(error.message), hint: null } }));
});
const leave = () => {
  for (const child of children.values()) child.kill();
  process.exit(0);
};
process.on('SIGTERM', leave);
process.on('SIGINT', leave);
server.listen(Number(option('port', 0)), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`));
