// Runs the browser tests, one after the other. Names of tests can be given.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const root = new URL('..', import.meta.url).pathname;
if (!existsSync(process.env.CHROMIUM ?? '/usr/bin/chromium')) {
  console.error('There is no chromium: `apt-get install chromium`, or name one in CHROMIUM');
  process.exit(1);
}
const names = process.argv.slice(2);
const files = readdirSync(join(root, 'tests'))
  .filter((name) => name.endsWith('.test.mjs') && (names.length === 0 || names.some((one) => name.includes(one))))
  .map((name) => join(root, 'tests', name));
const args = ['--test', '--test-concurrency=1', '--test-timeout=300000', '--test-reporter=spec', ...files];
process.exit(spawnSync(process.execPath, args, { stdio: 'inherit', cwd: root }).status ?? 1);
