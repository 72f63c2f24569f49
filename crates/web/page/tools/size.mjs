// Says how large the first load is, compressed; fails if it is too large.
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const LIMIT = 100_000;
const dist = new URL('../dist/', import.meta.url).pathname;
const files = (dir) => readdirSync(dir).sort().flatMap((name) => {
  const path = join(dir, name);
  return statSync(path).isDirectory() ? files(path) : [path];
});
let total = 0;
for (const path of files(dist)) {
  const bytes = gzipSync(readFileSync(path), { level: 6 }).length;
  total += bytes;
  console.log(`${String(bytes).padStart(7)}  ${path.slice(dist.length)}`);
}
console.log(`${String(total).padStart(7)}  bytes in all, compressed; at most ${LIMIT}`);
if (total > LIMIT) process.exit(1);
