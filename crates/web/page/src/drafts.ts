// What is about to be said: the session's draft, and what this tab has in its composer.

import { send } from './actions';
import type { Part } from './contract';
import { isSame, joined, type Known, toKeep } from './draft';
import { drop, isBar, notices, say } from './notices';
import { composer, session, theView } from './store';

/** What the composer was filled with: text that is still the same is nobody's own. */
let loaded: Part[] = [];
/** The session's draft, if the composer holds what became of it, or of a part of it. */
let known: Known | null = null;
const DRAFT = 'draft';

export function forgetLoaded(): void {
  loaded = [];
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
  // It is there already: this tab has been loaded again, say.
  if (view.draft.length > 0 && box && isSame(box.parts(), view.draft)) {
    loaded = view.draft;
    known = { draft: view.draft, others: [] };
    return;
  }
  // This tab has made it so itself, of what is in its composer.
  if (known && view.draft.length > 0 && isSame(view.draft, known.draft) && !box?.isBlank()) return;
  if ((isOwn || !isNews) && isUntouched()) {
    load(view.draft, view.draft);
  } else if (view.draft.length === 0) {
    // An unedited draft that was taken back leaves the composer of whoever loaded it, too.
    if (isLoaded()) composer()?.set([]);
  } else if (isNews) {
    const others = wentBack ? 'Another client went back. What was said then waits' : 'What somebody has typed elsewhere waits to be said';
    offer(isOwn ? 'Your text is kept. What was said then waits' : others);
  }
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
export function keepDraft(): void {
  const [view, box] = [theView(), composer()];
  if (!view || !box || view.state !== 'idle' || (isLoaded() && !box.isBlank())) return;
  const kept = toKeep(view.draft, box.parts(), known);
  if (!kept) return;
  known = kept;
  void send({ type: 'draft', parts: kept.draft });
}

/** Nobody sees the page: another tab may be opened, in which a draft that was deleted here must not come back. */
export function hide(): void {
  if (document.hidden && composer()?.isBlank()) keepDraft();
}

const typedKey = (id: string) => `retake-typed-${id}`;

/** The page is left: what is typed waits in the session, and in this tab for the case that it is only loaded again. */
export function leave(): void {
  const [id, box] = [session.value, composer()];
  keepDraft();
  if (id && box && !box.isBlank()) {
    try {
      sessionStorage.setItem(typedKey(id), JSON.stringify({ parts: box.parts(), known }));
    } catch {
      // There is no room for it; the session has it.
    }
  }
}

export function restoreTyped(id: string): void {
  known = null;
  try {
    const text = sessionStorage.getItem(typedKey(id));
    sessionStorage.removeItem(typedKey(id));
    if (!text || !composer()?.isBlank()) return;
    const typed = JSON.parse(text) as { parts: Part[]; known: Known | null };
    composer()?.set(typed.parts);
    known = typed.known;
  } catch {
    // Then there is nothing to restore.
  }
}
