// Runs the browser tests, several files at a time: `npm run test:browser -- [FILE…] [--only NAME]… [--repeat N] [--jobs N]`.
//
// FILE is a part of a file's name, NAME a part of a test's. The runner writes the time of each test to target/browser-times.json, the names of
// failed tests to target/browser-failed.json, and what a failure left to target/failures/browser.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { run } from 'node:test';
import { inspect, parseArgs } from 'node:util';

const root = new URL('..', import.meta.url).pathname;
const target = new URL('../../../../target', import.meta.url).pathname;
const TIMES = join(target, 'browser-times.json');
const FAILED = join(target, 'browser-failed.json');
/** A file that blocks its process, so that no test of it can reach its own limit, is ended after this many milliseconds. */
const FILE_LIMIT_MS = 300_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', multiple: true, default: [] }, repeat: { type: 'string', default: '1' }, jobs: { type: 'string', default: '3' } },
});
if (!existsSync(process.env.CHROMIUM ?? '/usr/bin/chromium')) fail('There is no chromium: `apt-get install chromium`, or name one in CHROMIUM');

function fail(why) {
  console.error(why);
  process.exit(1);
}

const before = existsSync(TIMES) ? JSON.parse(readFileSync(TIMES, 'utf8')) : [];
/** How long a file took last; one that is new may take long. */
const lastTime = (file) => before.filter((one) => one.name.startsWith(`${basename(file, '.test.mjs')}: `)).reduce((sum, one) => sum + one.seconds, 0) || Infinity;
// The slowest first, so that none of them is left for the end.
const files = readdirSync(join(root, 'tests'))
  .filter((name) => name.endsWith('.test.mjs') && (positionals.length === 0 || positionals.some((one) => name.includes(one))))
  .map((name) => join(root, 'tests', name))
  .sort((one, other) => lastTime(other) - lastTime(one));
if (files.length === 0) fail(`No file of tests is named like ${positionals.join(', ')}`);

/** Every test that ran, with how often it passed and failed, and its longest time. */
const ran = new Map();
function count(file, { name, nesting, skip, details }, outcome) {
  if (nesting > 0 || skip !== undefined) return;
  const key = `${basename(file, '.test.mjs')}: ${name}`;
  const one = ran.get(key) ?? { passed: 0, failed: 0, seconds: 0 };
  const seconds = details.duration_ms / 1_000;
  one[outcome] += 1;
  one.seconds = Math.max(one.seconds, seconds);
  ran.set(key, one);
  console.log(`${outcome === 'passed' ? '✔' : '✖'} ${key} (${seconds.toFixed(1)} s)`);
  if (outcome === 'failed') console.log(`${inspect(details.error.cause ?? details.error)}\n`);
}

const patterns = values.only.map((name) => new RegExp(name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')));
const filter = patterns.length > 0 ? { testNamePatterns: patterns } : {};
/** Runs the tests of one file, in a process of its own. */
async function runFile(file) {
  for await (const { type, data } of run({ files: [file], concurrency: 1, timeout: FILE_LIMIT_MS, ...filter })) {
    if (type === 'test:pass') count(file, data, 'passed');
    else if (type === 'test:fail') count(file, data, 'failed');
    else if (type === 'test:stdout' || type === 'test:stderr') process.stdout.write(data.message);
  }
}
/** Runs all files, each of the workers one at a time. */
async function once() {
  const left = [...files];
  const worker = async () => {
    for (let file = left.shift(); file; file = left.shift()) await runFile(file);
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, worker));
}

rmSync(join(target, 'failures/browser'), { recursive: true, force: true });
rmSync(FAILED, { force: true });
for (let left = Number(values.repeat); left > 0; left -= 1) await once();

const all = [...ran].sort(([, one], [, other]) => other.seconds - one.seconds);
if (all.length === 0) fail('No test ran');
const failed = all.filter(([, one]) => one.failed > 0);
mkdirSync(target, { recursive: true });
writeFileSync(FAILED, JSON.stringify(failed.map(([name]) => name)));
// A part of the tests says nothing of the others.
if (patterns.length === 0 && positionals.length === 0) {
  writeFileSync(TIMES, JSON.stringify(all.map(([name, { seconds }]) => ({ name, seconds: Math.round(seconds * 1_000) / 1_000 }))));
}
console.log(`${all.length - failed.length} tests passed, ${failed.length} failed, in ${Math.round(process.uptime())} s`);
for (const [name] of failed) console.log(`✖ ${name}`);
if (Number(values.repeat) > 1) for (const [name, { passed, failed, seconds }] of all) console.log(`${passed} passed, ${failed} failed, at most ${seconds.toFixed(1)} s  ${name}`);
process.exit(failed.length > 0 ? 1 : 0);
