// What is about to be said: the session's draft, and what this tab has in its composer.
//
// What is typed belongs to this tab and the session in which it was typed. It is kept in the tab while one types, becomes the session's draft
// when the session is left, and is emptied by nothing but a prompt that was accepted.

import type { Part } from './contract';
import { isSame, joined, type Known, toKeep } from './composerText';
import { drop, isBar, notices, say } from './notices';
import { send } from './commands';
import { composer, session, theView } from './store';
import { keepTyped, takeUnanswered, typedIn } from './unsent';

/** What the composer was filled with: text that is still the same is nobody's own. */
let loaded: Part[] = [];
/** The session's draft, if the composer holds what became of it, or of a part of it. */
let known: Known | null = null;
export const DRAFT = 'draft';
/** Sessions that are no more: what was typed in them goes to the one that takes their place. */
const gone = new Set<string>();
const PAUSE_MS = 300;
let pause: ReturnType<typeof setTimeout> | undefined;

/** Something was typed, or put into the composer. */
export function typedSoon(): void {
  clearTimeout(pause);
  pause = setTimeout(keepInTab, PAUSE_MS);
}

/** Keeps what is typed in this tab. What came from the session, and is as it came, is there. */
function keepInTab(): void {
  clearTimeout(pause);
  const [id, box] = [session.value, composer()];
  if (!id || !box) return;
  const parts = box.parts();
  keepTyped(id, parts.length === 0 || isLoaded() ? null : { parts, known });
}

/** What is in the composer is being said. Returns the draft that it was made from, if that held nothing else; what is typed next is made of none. */
export function takeSource(): Part[] | null {
  loaded = [];
  if (!known || known.others.length > 0) return null;
  const { draft } = known;
  known = null;
  return draft;
}

/** Puts what waits to be said into the composer. */
export function takeDraft(): void {
  const view = theView();
  if (!view || view.draft.length === 0) return say('plain', 'Nothing waits to be said');
  const isOwnText = !isUntouched();
  // What is being typed is not lost to what waits.
  load(isOwnText ? joined(view.draft, composer()?.parts() ?? []) : view.draft, view.draft);
  if (isOwnText) loaded = [];
  drop(DRAFT);
}

function load(parts: Part[], draft: Part[]): void {
  composer()?.set(parts);
  loaded = composer()?.parts() ?? [];
  known = draft.length > 0 ? { draft, others: [] } : null;
}

function isUntouched(): boolean {
  const box = composer();
  return !box || box.isBlank() || (loaded.length > 0 && isSame(box.parts(), loaded));
}

/** Whether what the composer holds came from the session, and is as it came. */
export function isLoaded(): boolean {
  return loaded.length > 0 && isUntouched();
}

/** What waits to be said has changed. What the user has typed stays; whoever only catches up is told nothing. */
export function draftChanged(isOwn: boolean, isNews: boolean, wentBack: boolean): void {
  const view = theView();
  if (!view) return;
  const box = composer();
  if (view.draft.length === 0) drop(DRAFT);
  // It is there already: this tab has made it so itself, say.
  if (view.draft.length > 0 && box && isSame(box.parts(), view.draft)) {
    known = { draft: view.draft, others: [] };
    return;
  }
  // This tab has made it so itself, of what is in its composer.
  if (known && view.draft.length > 0 && isSame(view.draft, known.draft) && !box?.isBlank()) return;
  if ((isOwn || !isNews) && isUntouched()) {
    load(view.draft, view.draft);
  } else if (view.draft.length === 0) {
    // An unedited draft that was taken back leaves the composer of whoever loaded it, too. A prompt that says something else does not say it.
    if (isLoaded() && wentBack) composer()?.set([]);
  } else if (isNews) {
    const others = wentBack ? 'Another client went back. What was said then waits' : 'What somebody has typed elsewhere waits to be said';
    offer(isOwn ? 'Your text is kept. What was said then waits' : others);
  }
}

/** A prompt was said: by whoever has loaded what it was, it need not be said again. */
export function wasSaid(parts: Part[]): void {
  if (isLoaded() && isSame(composer()?.parts() ?? [], parts)) composer()?.set([]);
}

/** Everything was told anew: what waits in the session is in the composer, or its place is told. */
export function meetDraft(): void {
  const [view, box] = [theView(), composer()];
  if (!view || !box) return;
  const id = session.value ?? '';
  for (const { parts, head, draft } of takeUnanswered(id)) {
    const since = view.entries.slice(view.entries.findIndex((entry) => entry.id === head) + 1);
    if (!since.some((entry) => entry.type === 'prompt' && isSame(entry.parts, parts))) giveBack(id, parts, draft);
  }
  if (view.draft.length === 0) return drop(DRAFT);
  const isKnown = known !== null && isSame(view.draft, known.draft);
  // One that is known and not there was deleted here.
  if (isKnown) return;
  if (isUntouched()) load(view.draft, view.draft);
  else if (isSame(box.parts(), view.draft)) known = { draft: view.draft, others: [] };
  else offer('Your text is kept. Something else waits to be said');
}

/** What was not said after all, and was made from `draft`, is in its session again, before what was typed there meanwhile. */
export function giveBack(id: string, parts: Part[], draft: Part[] | null = null): void {
  const box = composer();
  const source = draft && { draft, others: [] };
  if (box && (session.value === id || gone.has(id))) {
    box.set(joined(parts, box.parts()));
    loaded = [];
    known ??= source;
    return keepInTab();
  }
  const there = typedIn(id);
  return keepTyped(id, { parts: joined(parts, there?.parts ?? []), known: there?.known ?? source });
}

/** Tells where the draft is: in the bar of the change that made it one, if there is one. */
function offer(why: string): void {
  const bar = notices.value.findLast(isBar);
  const load = { text: 'Load it', run: takeDraft };
  if (!bar) return say('plain', why, [load], DRAFT);
  const withIt = { ...bar, text: `${bar.text}. ${why}`, actions: [...bar.actions, load] };
  notices.value = notices.value.map((one) => (one === bar ? withIt : one));
}

/** What a bar says and offers beside its own, if the draft was not loaded. */
export function takeOffer(): { text: string; actions: { text: string; run: () => void }[] } {
  const waiting = notices.value.find((one) => one.about === DRAFT);
  drop(DRAFT);
  return waiting ? { text: `. ${waiting.text}`, actions: waiting.actions } : { text: '', actions: [] };
}

/** What is typed and not said waits in the session, like that of a terminal that is left; what was deleted does not. */
function keepDraft(): void {
  const [view, box] = [theView(), composer()];
  if (!view || !box || (isLoaded() && !box.isBlank())) return;
  const kept = toKeep(view.draft, box.parts(), known);
  if (!kept) return;
  known = kept;
  void send({ type: 'draft', parts: kept.draft });
}

/** Nobody sees the page: another tab may be opened, in which a draft that was deleted here must not come back. */
function hide(): void {
  if (!document.hidden) return;
  if (composer()?.isBlank()) keepDraft();
  keepInTab();
}

/** The page or the session is left: what is typed waits in the session, and in this tab for the case that one comes back. */
function leave(): void {
  keepDraft();
  keepInTab();
}

let isGoing = false;
/** Whether the page goes: it hears no more answers. */
export function isLeft(): boolean {
  return isGoing;
}

/** The page goes, perhaps to be loaded again, or comes back. */
export function listenToLeaving(): void {
  addEventListener('pagehide', () => {
    isGoing = true;
    leave();
  });
  addEventListener('pageshow', () => (isGoing = false));
  document.addEventListener('visibilitychange', hide);
}

/** The session is no more. */
export function lose(id: string): void {
  gone.add(id);
}
/** It is there, after all. */
export function regain(id: string): void {
  gone.delete(id);
}

/** Another session takes the place of the one that is shown: each keeps what was typed in it. */
export function moveTo(id: string, show: () => void): void {
  const box = composer();
  const from = session.value;
  // What was typed where there is no session, or none any more, is meant for the next one.
  const isCarried = from === null || gone.has(from);
  const carried = isCarried ? (box?.parts() ?? []) : [];
  if (!isCarried) leave();
  else if (from) keepTyped(from, null);
  show();
  const there = typedIn(id);
  loaded = [];
  known = there?.known ?? null;
  if (from !== null || there) box?.set(joined(there?.parts ?? [], carried));
  keepInTab();
}
