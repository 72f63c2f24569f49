// What is about to be said: the session's draft, and what this tab has in its composer.

import { send } from './actions';
import type { Part } from './contract';
import { drop, notices, say } from './notices';
import { composer, session, theView } from './store';

/** What the composer was filled with: text that is still the same is nobody's own. */
let loaded: Part[] = [];
const DRAFT = 'draft';

export function forgetLoaded(): void {
  loaded = [];
}

/** Puts what waits to be said into the composer. */
export function takeDraft(): void {
  const view = theView();
  if (!view || view.draft.length === 0) return say('plain', 'Nothing waits to be said');
  composer()?.set(view.draft);
  loaded = composer()?.parts() ?? [];
  drop(DRAFT);
}

function isUntouched(): boolean {
  const box = composer();
  return !box || box.isBlank() || (loaded.length > 0 && JSON.stringify(box.parts()) === JSON.stringify(loaded));
}

/** Whether what the composer holds came from the session, and is as it came. */
export function isLoaded(): boolean {
  return loaded.length > 0 && isUntouched();
}

/** What waits to be said has changed. What the user has typed stays; whoever only catches up is told nothing. */
export function draftChanged(isOwn: boolean, isNews: boolean): void {
  const view = theView();
  if (!view) return;
  if (view.draft.length === 0) drop(DRAFT);
  // It is there already: this tab has been loaded again, say.
  if (view.draft.length > 0 && JSON.stringify(composer()?.parts()) === JSON.stringify(view.draft)) {
    loaded = view.draft;
    return;
  }
  if ((isOwn || !isNews) && isUntouched()) {
    composer()?.set(view.draft);
    loaded = composer()?.parts() ?? [];
  } else if (view.draft.length === 0) {
    // An unedited draft that was taken back leaves the composer of whoever loaded it, too.
    if (isLoaded()) composer()?.set([]);
  } else if (isNews) {
    offer(isOwn ? 'Your text is kept. What was said then waits' : 'Another client went back. What was said then waits');
  }
}

/** Tells where the draft is: in the bar of the change that made it one, if there is one. */
function offer(why: string): void {
  const bar = notices.value.findLast((one) => one.about.startsWith('op:'));
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

/** What is typed and not said waits in the session, like that of a terminal that is left. */
export function keepDraft(): void {
  const [view, box] = [theView(), composer()];
  if (!view || !box || box.isBlank() || isUntouched() || view.state !== 'idle') return;
  void send({ type: 'draft', parts: box.parts() });
}

const typedKey = (id: string) => `retake-typed-${id}`;

/** The page is left: what is typed waits in the session, and in this tab for the case that it is only loaded again. */
export function leave(): void {
  const [id, box] = [session.value, composer()];
  if (id && box && !box.isBlank()) {
    try {
      sessionStorage.setItem(typedKey(id), JSON.stringify(box.parts()));
    } catch {
      // There is no room for it; the session has it.
    }
  }
  keepDraft();
}

export function restoreTyped(id: string): void {
  try {
    const text = sessionStorage.getItem(typedKey(id));
    sessionStorage.removeItem(typedKey(id));
    if (text && composer()?.isBlank()) composer()?.set(JSON.parse(text) as Part[]);
  } catch {
    // Then there is nothing to restore.
  }
}
