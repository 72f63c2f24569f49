// What the page knows and what it is doing. Everything that lasts is the session's; this is what one tab has on its screen.

import { batch, computed, signal } from '@preact/signals';

import type { Change, EntryId, Event, Extent, FileDiff, Part, SessionFacts, View } from './contract';
import { type Totals, totalsOf, takeEntry } from './totals';
import { apply } from './view';

/** How far the page is connected with the session. */
export type Link =
  | { kind: 'connecting' }
  | { kind: 'open' }
  /** Cut off; tried again at `until`. */
  | { kind: 'waiting'; until: number; attempt: number }
  /** The server does not know this tab. */
  | { kind: 'shut' }
  /** There is no such session. */
  | { kind: 'missing'; message: string };

export type Verb = 'Rewind' | 'Restore' | 'Undo' | 'Redo';
/** A change with the words for it: `Rewind`, to `before 3 “mend add”`. */
export interface Wanted {
  change: Change;
  verb: Verb;
  name: string;
}

/** What is open beside the conversation. */
export type Panel =
  | { kind: 'plan'; wanted: Wanted }
  | { kind: 'summarise'; extent: Extent; name: string; prompts: EntryId[] }
  | { kind: 'diff'; title: string; files: FileDiff[]; entry: string | null }
  | { kind: 'timeline'; from?: string }
  | { kind: 'checkpoints' }
  | { kind: 'help' };

export const session = signal<string | null>(null);
export const sessions = signal<SessionFacts[]>([]);
export const workspace = signal('');
export const link = signal<Link>({ kind: 'connecting' });
export const panel = signal<Panel | null>(null);
/** Prompts of this tab that are held: each is said when the turn before it has ended. */
export const held = signal<{ request: string; parts: Part[] }[]>([]);
export const store = signal<{ bytes: number; budget: number } | null>(null);
/** Since when a turn runs; null if none does. */
export const runningSince = signal<number | null>(null);
const busy = signal<ReadonlyMap<string, string>>(new Map());
/** What is on its way in the session that is shown, in a word; there is never a second one there. */
export const underWay = computed(() => busy.value.get(session.value ?? '') ?? null);
export const applying = computed(() => underWay.value !== null);
/** Something begins in a session: what this returns is called when it has ended. */
export function beginWork(id: string, what: string): () => void {
  busy.value = new Map(busy.value).set(id, what);
  return () => {
    const rest = new Map(busy.value);
    rest.delete(id);
    busy.value = rest;
  };
}
/** What is read out to those who do not see the page. */
export const announced = signal('');
export const sidebarOpen = signal(false);
/** Whether something is looked for in the conversation. */
export const finding = signal(false);
/** The prompt that keys are about. */
export const current = signal<string | null>(null);
/** The prompt whose menu is open. */
export const menuOf = signal<string | null>(null);
let opener: HTMLElement | null = null;
/** Opens the menu of a prompt, or closes it. It is drawn beside `from`, and the focus goes back there. */
export function toggleMenu(entry: string, from: HTMLElement | null): void {
  // The second half of a double click means nothing.
  if (menuOf.value === entry && isMenuFresh()) return;
  opener = from;
  opened = Date.now();
  menuOf.value = menuOf.value === entry ? null : entry;
}
/** Within this many milliseconds after it has opened, a click was meant for what was there before. */
const FRESH_MS = 400;
let opened = 0;
export function isMenuFresh(): boolean {
  return Date.now() - opened < FRESH_MS;
}
export function menuOpener(): HTMLElement | null {
  return opener?.isConnected ? opener : null;
}

/** Counts what was drawn of the view: whoever reads it is drawn again. */
export const version = signal(0);
/** Counts changes of the entries. */
export const entriesVersion = signal(0);

let view: View | null = null;
let facts: Totals | null = null;

/** The view, for drawing. */
export function useView(): View | null {
  void version.value;
  return view;
}
/** The view, for acting. */
export function theView(): View | null {
  return view;
}
export function theFacts(): Totals {
  return facts ?? totalsOf({ entries: [] } as unknown as View);
}

/** Whether there is something that can be stopped: a turn that runs, or waits for an answer. */
export function isUnderWay(one: View | null): boolean {
  return one !== null && (one.state === 'running' || one.questions.length > 0);
}

let isDue = false;
let entriesChanged = false;
function draw(): void {
  if (!isDue) return;
  isDue = false;
  batch(() => {
    version.value += 1;
    if (entriesChanged) entriesVersion.value += 1;
    entriesChanged = false;
  });
}
/** Draws with the next frame, however much has come; a hidden tab has no frames. */
function changed(): void {
  if (isDue) return;
  isDue = true;
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
    held.value = [];
    finding.value = false;
    runningSince.value = null;
  });
  changed();
  draw();
  release();
}

/** Requests that were answered before the events that precede the answer have come. */
let early: { seq: number; go: () => void }[] = [];
function release(): void {
  const seen = view && link.value.kind === 'open' ? view.seq : Infinity;
  const due = early.filter((one) => one.seq <= seen);
  early = early.filter((one) => one.seq > seen);
  for (const one of due) one.go();
}
link.subscribe(release);

/** Waits until this page shows every event of a session up to number `seq`. While no events come, and for a session that is not shown, nothing waits. */
export async function untilShown(id: string, seq: number): Promise<void> {
  if (session.value !== id || !view) return;
  await new Promise<void>((go) => {
    early.push({ seq, go });
    release();
  });
}

/** Everything is told anew. Returns whether it is the first that is known of the session. */
export function takeView(next: View): boolean {
  const isFirst = view === null;
  view = next;
  facts = totalsOf(next);
  entriesChanged = true;
  // One that began before this tab looked runs since its prompt was said.
  watchState(next.entries.findLast((entry) => entry.type === 'prompt')?.at);
  changed();
  draw();
  release();
  return isFirst;
}

/** Takes an event in; `heard` is told of those that are new. */
export function takeEvent(event: Event, heard: (event: Event) => void): void {
  if (!view || !facts || !apply(view, event)) return;
  if (event.type === 'appended') {
    takeEntry(facts, event.entry, view.entries.length - 1);
    entriesChanged = true;
  } else if (event.type === 'head_moved') {
    facts = totalsOf(view);
    entriesChanged = true;
  } else if (event.type === 'state_changed') {
    watchState();
  } else if (event.type === 'turn_ended') {
    runningSince.value = null;
  }
  heard(event);
  changed();
  // The composer, notices and panels do not wait for a frame: none of them may show what the conversation does not show yet.
  if (!FLOOD.has(event.type)) draw();
  release();
}
/** Events that come by the hundred: they are drawn once a frame. */
const FLOOD: ReadonlySet<Event['type']> = new Set(['delta', 'thinking', 'call_output']);

/** Remembers since when a turn runs. */
function watchState(since = Date.now()): void {
  if (!view) return;
  if (view.state === 'running') runningSince.value ??= Math.min(since, Date.now());
  else if (view.state === 'idle' || view.questions.length === 0) runningSince.value = null;
}

/** What the composer is to do. It listens; nobody else holds its text. */
export interface ComposerPort {
  parts(): Part[];
  isBlank(): boolean;
  /** When somebody last typed in it. */
  typedAt(): number;
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

/** What others may want of the list of entries. */
export interface TranscriptPort {
  toEnd(): void;
  toTop(): void;
  show(key: string): void;
  /** Keeps an entry where it is on the screen, also if the width becomes another. */
  hold(key: string): void;
  /** The prompt whose turn is on the screen. */
  prompt(): string | null;
  /** Brings an entry into sight and marks it, without the focus; null marks none. */
  point(key: string | null): void;
}
let list: TranscriptPort | null = null;
export function setTranscript(one: TranscriptPort | null): void {
  list = one;
}
export function transcript(): TranscriptPort | null {
  return list;
}
