// Fails if `dist` is not what the sources make: builds anew, beside it, and compares.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = new URL('..', import.meta.url).pathname;
const anew = mkdtempSync(join(tmpdir(), 'retake-dist-'));
const read = (dir) => {
  const names = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return names.map((one) => join(one.parentPath ?? one.path, one.name)).map((path) => [path.slice(dir.length), readFileSync(path).toString('base64')]).sort();
};
try {
  execFileSync(process.execPath, [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--outDir', anew, '--emptyOutDir', '--logLevel', 'error'], { cwd: root, stdio: 'inherit' });
  const same = JSON.stringify(read(join(root, 'dist/'))) === JSON.stringify(read(`${anew}/`));
  if (!same) {
    console.error('`dist` is not what the sources make: run `npm run build` and commit it');
    process.exit(1);
  }
  console.log('`dist` is fresh');
} finally {
  rmSync(anew, { recursive: true, force: true });
}
