// What the page tells in passing: the newest, and what can be taken back; each goes when its cause has gone.

import { signal } from '@preact/signals';

import type { Left } from './text/format';

export type Tone = 'plain' | 'good' | 'warning' | 'bad';
export interface Action {
  text: string;
  run: () => void;
}
export interface Notice {
  id: number;
  tone: Tone;
  text: string;
  actions: Action[];
  /** What it is about: there is one notice about it, and it goes with it. */
  about: string;
  /** The turn that it is about: it goes when that has left the conversation. */
  turn?: string | undefined;
  /** Whether it goes by itself. */
  passes: boolean;
  /** Paths that changed and did not go back: each is named. */
  left: Left[];
}

export const notices = signal<Notice[]>([]);
const MOST = 5;
const PASSES_MS = 10_000;
let noticed = 0;

/** Says something. What was said about the same is replaced. */
export function say(tone: Tone, text: string, actions: Action[] = [], about = '', turn?: string, left: Left[] = []): void {
  noticed += 1;
  const passes = actions.length === 0 && (tone === 'plain' || tone === 'good');
  const notice: Notice = { id: noticed, tone, text, actions, about, turn, passes, left };
  const others = notices.value.filter((one) => one.text !== text && !(about && one.about === about));
  const all = [...others, notice];
  const first = all.length > MOST ? all.find((one) => !isBar(one)) : undefined;
  notices.value = all.filter((one) => one !== first);
  if (passes) setTimeout(() => dismiss(notice.id), PASSES_MS);
}

export function dismiss(id: number): void {
  dropWhere((one) => one.id === id);
}

/** Takes away what was said about something that is over. */
export function drop(about: string): void {
  dropWhere((one) => one.about === about);
}

export function dropWhere(is: (notice: Notice) => boolean): void {
  if (notices.value.some(is)) notices.value = notices.value.filter((one) => !is(one));
}

/** Whether it takes something back: it stays in sight whatever else there is to say. */
export function isBar(notice: Notice): boolean {
  return notice.about.startsWith('op:');
}

/** Shows the one before the newest. */
export function turnOver(): void {
  const last = notices.value.findLast((one) => !isBar(one));
  if (last) notices.value = [last, ...notices.value.filter((one) => one !== last)];
}

/** What a notice is about that is told when a session is gone to. */
export const inSession = (id: string) => `in:${id}`;
