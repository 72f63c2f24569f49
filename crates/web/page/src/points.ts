// What the session knows of its prompts beside what was said: labels, and what each turn did to the files. Asked for when something
// has changed; nothing is worked out here.

import { signal } from '@preact/signals';

import { send } from './actions';
import type { EntryId, Target, TreePrompt, TurnSummary } from './contract';

/** The prompts that one can go back to. */
export const points = signal<Map<EntryId, Target>>(new Map());
/** All prompts that were ever said, as of when the timeline was last read. */
export const said = new Map<EntryId, TreePrompt>();

let asked = 0;
let isDue = false;
/** Asks again, once for everything that happens at a time. */
export function refreshPoints(): void {
  if (isDue) return;
  isDue = true;
  setTimeout(async () => {
    isDue = false;
    asked += 1;
    const mine = asked;
    const answer = await send({ type: 'targets' });
    if (mine === asked && answer.ok?.type === 'targets') points.value = new Map(answer.ok.targets.map((one) => [one.id, one]));
  }, 50);
}

export function forgetPoints(): void {
  asked += 1;
  points.value = new Map();
  said.clear();
}

/** `+1 ~2 −0`; nothing if no file was changed. */
export function counts(files: TurnSummary | null | undefined): string {
  if (!files || files.added + files.modified + files.deleted === 0) return '';
  return `+${files.added} ~${files.modified} −${files.deleted}`;
}
