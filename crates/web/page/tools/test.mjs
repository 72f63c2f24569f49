// Runs the unit tests: bundles each `*.test.ts` and hands it to node's own runner.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const root = new URL('..', import.meta.url).pathname;
const out = join(root, '.tmp/unit');
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const input = Object.fromEntries(
  readdirSync(join(root, 'src/tests'))
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => [name.slice(0, -3), join(root, 'src/tests', name)]),
);
const bundle = await rolldown({ input, platform: 'node', external: [/^node:/], logLevel: 'silent', transform: { jsx: { runtime: 'automatic', importSource: 'preact' } } });
await bundle.write({ dir: out, format: 'esm', entryFileNames: '[name].mjs' });
const files = Object.keys(input).map((name) => join(out, `${name}.mjs`));
process.exit(spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit', cwd: root }).status ?? 1);
