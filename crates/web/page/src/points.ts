// What the session knows of its prompts beside what was said: labels, and what each turn did to the files. Asked for when something
// has changed; nothing is worked out here.

import { signal } from '@preact/signals';

import type { EntryId, Target, TreePrompt, TurnSummary } from './contract';
import { liveQuery } from './liveQuery';
import { store } from './store';
import { filesChanged } from './text/format';

/** The prompts that one can go back to. */
export const points = signal<Map<EntryId, Target>>(new Map());
/** All prompts that were ever said, as of when the timeline was last read. */
export const said = new Map<EntryId, TreePrompt>();

const targets = liveQuery({ type: 'targets' }, (reply) => {
  if (reply.type === 'targets') points.value = new Map(reply.targets.map((one) => [one.id, one]));
});
let isDue = false;
/** Asks again, once for everything that happens at a time. */
export function refreshPoints(): void {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    void targets.ask();
  }, 50);
}

export function forgetPoints(): void {
  targets.forget();
  points.value = new Map();
  said.clear();
}

/** `2 files changed, 1 added`; nothing if no file was. */
export function counts(files: TurnSummary | null | undefined): string {
  return files ? filesChanged(files) : '';
}

/** Asks again how large the store is. */
export const { ask: refreshStore } = liveQuery({ type: 'store' }, (reply) => {
  if (reply.type === 'store') store.value = { bytes: reply.bytes, budget: reply.budget };
});
