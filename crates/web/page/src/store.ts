// What the page knows and what it is doing. Everything that lasts is the session's; this is what one tab has on its screen.

import { batch, signal } from '@preact/signals';

import { isOwn } from './api';
import type { Change, Event, FileDiff, Part, SessionFacts, View } from './contract';
import { type Facts, factsOf, takeEntry } from './facts';
import type { Link } from './stream';
import { apply } from './view';

export type Tone = 'plain' | 'good' | 'warning' | 'bad';
export interface Notice {
  id: number;
  tone: Tone;
  text: string;
  actions: { text: string; run: () => void }[];
  /** Whether it goes by itself. */
  passes: boolean;
}

/** What is open beside the conversation. */
export type Panel =
  | { kind: 'plan'; change: Change; title: string }
  | { kind: 'diff'; title: string; files: FileDiff[]; entry: string | null }
  | { kind: 'timeline'; from?: string }
  | { kind: 'checkpoints' }
  | { kind: 'help' };

export const session = signal<string | null>(null);
export const sessions = signal<SessionFacts[]>([]);
export const workspace = signal('');
export const link = signal<Link>({ kind: 'connecting' });
export const panel = signal<Panel | null>(null);
export const notices = signal<Notice[]>([]);
export const store = signal<{ bytes: number; budget: number } | null>(null);
/** Since when a turn runs; null if none does. */
export const runningSince = signal<number | null>(null);
/** Whether a change is on its way: there is never a second one. */
export const applying = signal(false);
/** What is read out to those who do not see the page. */
export const announced = signal('');
export const sidebarOpen = signal(false);
/** The prompt that keys are about. */
export const current = signal<string | null>(null);
/** The prompt whose menu is open. */
export const menuOf = signal<string | null>(null);
let opener: HTMLElement | null = null;
/** Opens the menu of a prompt, or closes it. It is drawn beside `from`, and the focus goes back there. */
export function toggleMenu(entry: string, from: HTMLElement | null): void {
  opener = from;
  menuOf.value = menuOf.value === entry ? null : entry;
}
export function menuOpener(): HTMLElement | null {
  return opener?.isConnected ? opener : null;
}

/** Counts what was drawn of the view: whoever reads it is drawn again. */
export const version = signal(0);
/** Counts changes of the entries. */
export const entriesVersion = signal(0);

let view: View | null = null;
let facts: Facts | null = null;

/** The view, for drawing. */
export function useView(): View | null {
  void version.value;
  return view;
}
/** The view, for acting. */
export function theView(): View | null {
  return view;
}
export function theFacts(): Facts {
  return facts ?? factsOf({ entries: [] } as unknown as View);
}

/** Whether there is something that can be stopped: a turn that runs, or waits for an answer. */
export function isUnderWay(one: View | null): boolean {
  return one !== null && (one.state === 'running' || one.questions.length > 0);
}

let isDue = false;
let entriesChanged = false;
/** Draws once a frame, however much has come; a hidden tab has no frames. */
function changed(): void {
  if (isDue) return;
  isDue = true;
  const draw = () => {
    if (!isDue) return;
    isDue = false;
    batch(() => {
      version.value += 1;
      if (entriesChanged) entriesVersion.value += 1;
      entriesChanged = false;
    });
  };
  if (document.hidden) setTimeout(draw, 100);
  else {
    requestAnimationFrame(draw);
    setTimeout(draw, 250);
  }
}

/** Forgets the session that was shown. */
export function forget(): void {
  view = null;
  facts = null;
  entriesChanged = true;
  batch(() => {
    panel.value = null;
    menuOf.value = null;
    current.value = null;
    notices.value = [];
    runningSince.value = null;
  });
  changed();
}

/** Everything is told anew. Returns whether it is the first that is known of the session. */
export function takeView(next: View): boolean {
  const isFirst = view === null;
  view = next;
  facts = factsOf(next);
  entriesChanged = true;
  watchState();
  changed();
  return isFirst;
}

/** Takes an event in; `heard` is told of those that are new. */
export function takeEvent(event: Event, heard: (event: Event, isOwn: boolean) => void): void {
  if (!view || !facts || !apply(view, event)) return;
  if (event.type === 'appended') {
    takeEntry(facts, event.entry, view.entries.length - 1);
    entriesChanged = true;
  } else if (event.type === 'head_moved') {
    facts = factsOf(view);
    entriesChanged = true;
  } else if (event.type === 'state_changed') {
    watchState();
  } else if (event.type === 'turn_ended') {
    runningSince.value = null;
  }
  heard(event, isOwn(event.request));
  changed();
}

/** Remembers since when a turn runs. */
function watchState(): void {
  if (!view) return;
  if (view.state === 'running') runningSince.value ??= Date.now();
  else if (view.state === 'idle' || view.questions.length === 0) runningSince.value = null;
}

let noticed = 0;
/** Says something. The same text is not said twice at once. */
export function say(tone: Tone, text: string, actions: Notice['actions'] = []): void {
  noticed += 1;
  const passes = actions.length === 0 && (tone === 'plain' || tone === 'good');
  const notice: Notice = { id: noticed, tone, text, actions, passes };
  // There is one bar with Undo: that of the last change.
  const others = notices.value.filter((one) => one.text !== text && !(isUndoBar(actions) && isUndoBar(one.actions)));
  notices.value = [...others, notice].slice(-3);
  if (passes) setTimeout(() => dismiss(notice.id), 10_000);
}
function isUndoBar(actions: Notice['actions']): boolean {
  return actions.some((action) => action.text === 'Undo' || action.text === 'Redo');
}
export function dismiss(id: number): void {
  if (notices.value.some((one) => one.id === id)) notices.value = notices.value.filter((one) => one.id !== id);
}

/** What the composer is to do. It listens; nobody else holds its text. */
export interface ComposerPort {
  parts(): Part[];
  isBlank(): boolean;
  set(parts: Part[]): void;
  /** Types text where the cursor is. */
  insert(text: string): void;
  focus(): void;
  remember(parts: Part[]): void;
}
let port: ComposerPort | null = null;
export function setComposer(one: ComposerPort | null): void {
  port = one;
}
export function composer(): ComposerPort | null {
  return port;
}
