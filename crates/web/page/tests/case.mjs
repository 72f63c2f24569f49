// A browser test: it has a time limit whose message names it, and a failure leaves screenshots, the page's console and the output of the
// programs in a directory that its message names.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test as run } from 'node:test';

const root = new URL('../../../..', import.meta.url).pathname;
const FAILURES = process.env.RETAKE_FAILURES ?? join(root, 'target/failures/browser');
/** A test that takes longer hangs: the slowest takes a quarter of it with both cores busy. */
const LIMIT_MS = 120_000;
/** A page that hangs has no picture. */
const PICTURE_MS = 5_000;

/** What each running test has started, by its context. */
const witnesses = new WeakMap();

/** Defines a test, as `test` of node's runner does. */
export function test(name, body) {
  run(name, async (t) => {
    const witness = new Witness();
    witnesses.set(t, witness);
    try {
      await limited(name, body(t));
      witness.check();
    } catch (error) {
      throw withPlace(error, await witness.leave(name));
    }
  });
}

/** What saw a test that runs. */
export function witnessOf(t) {
  return witnesses.get(t);
}

async function limited(name, work) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`“${name}” has not ended after ${LIMIT_MS / 1_000} s`)), LIMIT_MS);
  });
  try {
    await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
    // When the limit has come first, what the test still fails with is no news.
    work.catch(() => {});
  }
}

/** The error with the directory in its message. The stack begins with the message, and is what a reporter prints. */
function withPlace(thrown, directory) {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const [before, text] = [error.message, `${error.message}\nScreenshots, console and program output: ${directory}`];
  error.stack = (error.stack ?? before).replace(before, () => text);
  error.message = text;
  return error;
}

class Witness {
  pages = [];
  programs = [];
  screens = [];
  checks = [];

  /** Follows a page: its console, its errors and what it could not load. */
  page(page) {
    const lines = [];
    page.on('console', (message) => lines.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => lines.push(`uncaught: ${error.stack ?? error}`));
    page.on('requestfailed', (request) => lines.push(`failed: ${request.method()} ${request.url()} ${request.failure()?.errorText}`));
    this.pages.push({ page, lines });
  }

  /** Follows what a program writes. */
  program(name, child) {
    const one = { name, text: '' };
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => (one.text += bytes));
    child.once('exit', (code, signal) => (one.text += `\n[ended with ${code ?? signal}]\n`));
    this.programs.push(one);
  }

  /** Reads a terminal's screen when the test fails. */
  screen(read) {
    this.screens.push(read);
  }

  /** Called when the test has passed so far; what it throws fails the test. */
  finally(check) {
    this.checks.push(check);
  }

  check() {
    for (const check of this.checks) check();
  }

  /** Writes everything down; returns where. */
  async leave(name) {
    const file = basename(process.argv[1] ?? '', '.test.mjs');
    const directory = join(FAILURES, file, name.replace(/[^\p{L}\p{N}]+/gu, '-').slice(0, 100));
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
    const write = (what, text) => writeFileSync(join(directory, what), text);
    for (const [at, { page, lines }] of this.pages.entries()) {
      write(`console-${at + 1}.txt`, `${page.url()}\n${lines.join('\n')}\n`);
      const picture = page.screenshot({ path: join(directory, `screenshot-${at + 1}.png`), timeout: PICTURE_MS });
      await picture.catch((error) => write(`screenshot-${at + 1}.txt`, `There is no picture: ${error.message}\n`));
    }
    for (const [at, { name: program, text }] of this.programs.entries()) write(`${program}-${at + 1}.txt`, text);
    for (const [at, read] of this.screens.entries()) write(`terminal-${at + 1}.txt`, safely(read));
    return directory;
  }
}

function safely(read) {
  try {
    return read();
  } catch (error) {
    return `There is no screen: ${error.message}\n`;
  }
}
