// The page's modules import in one direction: state, then effects, then views.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';

/** From the lowest: a module imports from its own layer or from those before it. A directory stands for all that is in it. */
const LAYERS: Record<string, string[]> = {
  contract: ['contract'],
  pure: ['text/', 'view', 'totals', 'composerText', 'focus', 'theme'],
  state: ['notices', 'store', 'unsent'],
  effects: ['api', 'stream', 'commands', 'liveQuery', 'points', 'sessionList', 'drafts', 'changes', 'actions', 'callDiffs', 'backButton', 'keys', 'slash'],
  views: ['ui/'],
  page: ['main'],
};
const names = Object.keys(LAYERS);

function layerOf(module: string): number {
  return names.findIndex((name) => LAYERS[name]?.some((one) => module === one || (one.endsWith('/') && module.startsWith(one))));
}

/** What is wrong with the imports of these modules, by their paths without an ending. */
function problems(sources: Record<string, string>): string[] {
  const found: string[] = [];
  const imports = new Map<string, string[]>();
  for (const [module, source] of Object.entries(sources)) {
    if (layerOf(module) < 0) found.push(`${module} is in no layer`);
    const to = [...source.matchAll(/from '(\.[^']*)'/g)].map((match) => join(module, '..', match[1] ?? ''));
    imports.set(module, to);
    for (const other of to) {
      if (layerOf(other) > layerOf(module)) found.push(`${module} imports ${other}, which is above it`);
    }
  }
  const done = new Set<string>();
  const visit = (module: string, way: string[]): void => {
    if (way.includes(module)) found.push(`a circle: ${[...way.slice(way.indexOf(module)), module].join(' → ')}`);
    else if (!done.has(module)) for (const other of imports.get(module) ?? []) visit(other, [...way, module]);
    done.add(module);
  };
  for (const module of imports.keys()) visit(module, []);
  return found;
}

test('no module imports from a layer above it, and none in a circle', () => {
  const paths = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path) && !/^tests|\.d\.ts$/.test(path));
  const sources = paths.map((path) => [path.replace(/\.tsx?$/, ''), readFileSync(join('src', path), 'utf8')]);
  assert.ok(sources.length > 40);
  assert.deepEqual(problems(Object.fromEntries(sources)), []);
});

test('an import upwards and a circle are found', () => {
  assert.deepEqual(problems({ store: "import { go } from './actions';" }), ['store imports actions, which is above it']);
  assert.deepEqual(problems({ 'text/format': "import { x } from '../ui/Row';" }), ['text/format imports ui/Row, which is above it']);
  const circle = { drafts: "import { a } from './actions';", actions: "import type { B } from './drafts';" };
  assert.deepEqual(problems(circle), ['a circle: drafts → actions → drafts']);
  assert.deepEqual(problems({ somewhere: '' }), ['somewhere is in no layer']);
});
