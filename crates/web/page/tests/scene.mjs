// A scene for browser tests: a workspace, the scripted model, the real program, a browser. Everything is its own and goes with it.
//
// RETAKE_BIN and RETAKE_MODEL_BIN name the program and the scripted model (`cargo build -p retake -p retake-testkit --example model`);
// RETAKE_DIST=1 shows the page of `dist` instead of the one that is part of the program, so that it need not be built again;
// RETAKE_BRIDGE=1 serves the page with `tools/mock/server.mjs` over a session's socket, for a program that cannot serve it itself.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { chromium } from 'playwright-core';
import { witnessOf } from './case.mjs';

const root = new URL('../../../..', import.meta.url).pathname;
const binary = (name, variable) => process.env[variable] ?? join(root, 'target/debug', name);
export const RETAKE = binary('retake', 'RETAKE_BIN');
const MODEL = binary('examples/model', 'RETAKE_MODEL_BIN');
const BRIDGE = process.env.RETAKE_BRIDGE === '1';
const DIST = process.env.RETAKE_DIST === '1' ? new URL('../dist', import.meta.url).pathname : null;
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** What was started here, so that nothing of it outlives a run that is cut short. */
const started = new Set();
function start(command, args, options) {
  const child = spawn(command, args, options);
  started.add(child);
  child.once('exit', () => started.delete(child));
  return child;
}
process.on('exit', () => started.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(1));

let browser;
export async function theBrowser() {
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb', '--font-render-hinting=none'];
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args });
  return browser;
}
export async function closeBrowser() {
  await browser?.close();
  browser = undefined;
}

/** Waits for the first line of a process that `is` what is wanted. */
function lineOf(child, is, what) {
  return new Promise((resolve, reject) => {
    let seen = '';
    const take = (bytes) => {
      seen += bytes;
      const line = seen.split('\n').find((one) => is.test(one));
      if (line) resolve(is.exec(line)[0]);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('exit', (code) => reject(new Error(`${what} ended with ${code}: ${seen}`)));
    child.on('error', reject);
  });
}

/** Answers with a file of `dist`, under the headers of the server. */
async function fromDist(route) {
  const { pathname } = new URL(route.request().url());
  const path = join(DIST, pathname === '/' ? 'index.html' : pathname);
  // Where the server is gone, so is what it serves; a test that has ended waits for neither.
  const response = await route.fetch().catch(() => null);
  if (!response) return route.abort().catch(() => {});
  if (!existsSync(path) || (pathname === '/' && !response.ok())) return route.fulfill({ response });
  const kind = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' }[path.split('.').at(-1)];
  return route.fulfill({ status: 200, headers: { ...response.headers(), 'content-type': kind }, body: readFileSync(path) });
}

export class Scene {
  /** `answers` are the model's, in order; they begin again at their end. */
  static async start(t, { files = {}, answers = [{ says: 'Well.' }], config = '' } = {}) {
    const scene = new Scene();
    scene.witness = witnessOf(t);
    scene.witness.finally(() => scene.check());
    scene.dir = mkdtempSync(join(tmpdir(), 'retake-page-'));
    scene.workspace = join(scene.dir, 'workspace');
    for (const name of ['workspace', 'data', 'run', 'home']) mkdirSync(join(scene.dir, name), { mode: 0o700 });
    for (const [name, text] of Object.entries(files)) scene.write(name, text);
    writeFileSync(join(scene.dir, 'config.toml'), config);
    writeFileSync(join(scene.dir, 'script.jsonl'), answers.map((answer) => JSON.stringify(answer)).join('\n'));
    scene.env = {
      PATH: process.env.PATH,
      HOME: join(scene.dir, 'home'),
      LANG: 'C.UTF-8',
      XDG_RUNTIME_DIR: join(scene.dir, 'run'),
      RETAKE_DATA_DIR: join(scene.dir, 'data'),
      RETAKE_CONFIG: join(scene.dir, 'config.toml'),
    };
    scene.model = start(MODEL, [join(scene.dir, 'script.jsonl')], { stdio: ['ignore', 'pipe', 'pipe'] });
    scene.modelUrl = await lineOf(scene.model, /http:\/\/\S+/, 'the model');
    scene.witness.program('model', scene.model);
    scene.requests = '';
    scene.model.stdout.on('data', (bytes) => (scene.requests += bytes));
    scene.contexts = [];
    scene.terminals = [];
    scene.problems = [];
    await scene.serve(0);
    t.after(() => scene.end());
    return scene;
  }

  async serve(port) {
    const url = `${this.modelUrl}/v1`;
    this.env.RETAKE_MODEL = 'openai/scripted';
    this.env.RETAKE_BASE_URL = url;
    const bridge = [new URL('../tools/mock/server.mjs', import.meta.url).pathname, '--retake', RETAKE, '--workspace', this.workspace, '--base-url', url, '--port', String(port)];
    const [command, args] = BRIDGE ? [process.execPath, bridge] : [RETAKE, ['serve', '--port', String(port)]];
    this.server = start(command, args, { cwd: this.workspace, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.witness.program('retake', this.server);
    this.url = await lineOf(this.server, /http:\/\/\S+/, 'the server');
    this.port = Number(new URL(this.url).port);
  }

  /** Ends the server, as a crash would. */
  async kill() {
    const gone = new Promise((resolve) => this.server.once('exit', resolve));
    this.server.kill('SIGKILL');
    await gone;
  }

  write(name, text) {
    const path = join(this.workspace, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  read(name) {
    const path = join(this.workspace, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : null;
  }

  /** A page with a window of its own. */
  async page({ width = 1280, height = 800, dark = false, reduced = false, touch = false, signIn = true } = {}) {
    const known = signIn && this.state ? { storageState: this.state } : {};
    const context = await (await theBrowser()).newContext({
      ...known,
      viewport: { width, height },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: reduced ? 'reduce' : 'no-preference',
      hasTouch: touch,
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    this.contexts.push(context);
    if (DIST) await context.route((url) => !url.pathname.startsWith('/api') && !url.searchParams.has('token'), fromDist);
    const page = await context.newPage();
    this.witness.page(page);
    page.setDefaultTimeout(30_000);
    page.on('pageerror', (error) => this.problems.push(String(error)));
    page.on('console', (message) => {
      // A request that fails while the server is gone is told by the browser itself.
      if (message.type() === 'error' && !/Failed to load resource|net::ERR/.test(message.text())) this.problems.push(message.text());
    });
    if (!signIn) return page;
    if (!this.state) {
      // An address lets one browser in, once.
      await page.goto(this.url);
      this.state = await context.storageState();
    }
    await page.goto(new URL('/', this.url).href);
    await ready(page);
    return page;
  }

  /** One more tab of the same browser. */
  async tab(page) {
    const other = await page.context().newPage();
    this.witness.page(other);
    other.setDefaultTimeout(30_000);
    other.on('pageerror', (error) => this.problems.push(String(error)));
    await other.goto(page.url());
    return other;
  }

  /** The program in a real terminal. What is read is what is on the screen: a program that draws differences may write a word in pieces. */
  terminal(...args) {
    const tmux = (...words) => execFileSync('tmux', ['-S', join(this.dir, 'run/tmux'), '-f', '/dev/null', ...words], { env: this.env, encoding: 'utf8' });
    const env = Object.entries({ ...this.env, TERM: 'tmux-256color' }).map(([name, value]) => `${name}=${value}`);
    tmux('set-option', '-g', 'status', 'off', ';', 'set-option', '-s', 'escape-time', '0', ';', 'new-session', '-d', '-x', '100', '-y', '40', '-c', this.workspace, '--', 'env', '-i', ...env, RETAKE, ...args);
    const server = { kill: () => started.delete(server) && tmux('kill-server') };
    started.add(server);
    this.terminals.push(server);
    const screen = () => tmux('capture-pane', '-p');
    this.witness.screen(screen);
    return {
      /** Waits until `text` is on the screen. */
      async shows(text) {
        const end = Date.now() + 30_000;
        while (!screen().includes(text)) {
          if (Date.now() > end) throw new Error(`the terminal does not show ${text}:\n${screen()}`);
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      },
      type: (text) => void tmux('send-keys', '-l', '--', text),
      press: (key) => void tmux('send-keys', key),
    };
  }

  async end() {
    this.terminals.forEach((terminal) => terminal.kill());
    for (const context of this.contexts) await context.close().catch(() => {});
    this.server.kill('SIGTERM');
    await new Promise((resolve) => (this.server.exitCode !== null || this.server.signalCode ? resolve() : this.server.once('exit', resolve)));
    this.model.kill();
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    this.check();
  }

  /** Fails once for what went wrong in the pages. */
  check() {
    const problems = this.problems.splice(0);
    if (problems.length > 0) throw new Error(`the page had problems:\n${problems.join('\n')}`);
  }
}

/** Says something, and waits until the turn has ended. */
export async function say(page, text) {
  await ready(page);
  await page.locator('#composer').fill(text);
  await page.locator('#composer').press('Enter');
  await page.locator('.e-prompt', { hasText: text }).last().waitFor();
  await ready(page);
}
export async function ready(page) {
  await page.locator('.status .state', { hasText: 'ready' }).waitFor({ timeout: 60_000 });
}
/** Waits until the page has drawn so often: it measures and places what it draws within a few frames. */
export async function frames(page, count = 5) {
  await page.evaluate(async (left) => {
    for (; left > 0; left -= 1) await new Promise((resolve) => requestAnimationFrame(resolve));
  }, count);
}
/** A call that runs until the test calls `go`: the turn lasts as long as the test wants. It needs the permission for bash. */
export const untilGo = { calls: [['bash', { command: 'until [ -e go ]; do sleep 0.02; done' }]] };
export const go = (scene) => scene.write('go', '');
/** Opens the menu of a prompt with the mouse. */
export async function menu(page, number) {
  const prompt = page.locator(`[aria-label="Prompt ${number}"]`);
  await prompt.hover();
  await prompt.locator('.rewind').click();
  // A click that comes sooner was meant for what was there before.
  await page.waitForTimeout(450);
  return page.locator('[role=menu]');
}
export async function choose(page, number, item) {
  await (await menu(page, number)).locator('[role=menuitem]', { hasText: item }).click();
}
/** Applies what the panel shows. */
export async function apply(page) {
  await page.locator('.plan .actions button.primary[aria-disabled=false]').click();
  await page.locator('.plan').waitFor({ state: 'detached' });
}
