// What can be done from the page, in the words of the terminal. Plans, diffs, conflicts and refusals are the session's: nothing about a
// rewind is worked out here.

import { ApiError, ask, listSessions, newSession, deleteSession, type Outcome } from './api';
import type { Change, Command, EntryId, Event, Extent, Part, Refusal, RewindDocument } from './contract';
import {
  announced,
  applying,
  composer,
  forget,
  link,
  notices,
  panel,
  say,
  session,
  sessions,
  sidebarOpen,
  store,
  takeEvent,
  takeView,
  theFacts,
  theView,
  workspace,
} from './store';
import { Stream } from './stream';
import { inFiles, partName } from './text/words';
import { head } from './view';

export const RUNNING = 'a turn is running: stop it first, or wait until it has ended';

let stream: Stream | null = null;
/** What the composer was filled with: text that is still the same is nobody's own. */
let loaded: Part[] = [];

// Sessions.

/** Begins: the session of the address, else one that is open, else the newest, else a new one. */
export async function begin(): Promise<void> {
  addEventListener('hashchange', () => void open(fromAddress()));
  // Others begin and delete sessions too.
  addEventListener('focus', () => void refreshSessions());
  await refreshSessions();
  const wanted = fromAddress();
  if (wanted) return open(wanted);
  const list = sessions.value;
  const first = list.find((one) => one.live) ?? list[0];
  if (first) go(first.session);
  else if (link.value.kind !== 'shut') await create();
}

function fromAddress(): string | null {
  return /^#\/s\/([\w-]+)$/.exec(location.hash)?.[1] ?? null;
}

export function go(id: string): void {
  sidebarOpen.value = false;
  if (fromAddress() === id) open(id);
  else location.hash = `#/s/${id}`;
}

function open(id: string | null): void {
  if (!id || id === session.value) return;
  keepDraft();
  stream?.stop();
  forget();
  loaded = [];
  // What was typed before there was a session is meant for the first one.
  if (session.value !== null) composer()?.set([]);
  session.value = id;
  stream = new Stream(id, {
    view: (view) => {
      const isFirst = takeView(view);
      if (isFirst) {
        for (const entry of view.entries) if (entry.type === 'prompt') composer()?.remember(entry.parts);
        restoreTyped(id);
        if (composer()?.isBlank() && view.draft.length > 0) takeDraft();
        composer()?.focus();
      }
      void refreshStore();
    },
    event: (event) => takeEvent(event, hear),
    link: (next) => {
      link.value = next;
      // One in which nothing was ever said goes with its server; there is nothing to miss in it.
      if (next.kind === 'missing' && theView()?.entries.length === 0) void create();
    },
    seen: () => theView()?.seq ?? null,
  });
}

export function reconnect(): void {
  if (link.value.kind === 'waiting') stream?.hurry();
  else location.reload();
}

export async function refreshSessions(): Promise<void> {
  try {
    const list = await listSessions();
    sessions.value = list.sessions;
    workspace.value = list.workspace;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) link.value = { kind: 'shut' };
    else if (error instanceof ApiError && error.status === 0) setTimeout(() => void refreshSessions(), 2_000);
    else say('bad', sentence(String((error as Error).message)));
  }
}

export async function create(): Promise<void> {
  try {
    const id = await newSession();
    await refreshSessions();
    go(id);
  } catch (error) {
    say('bad', sentence((error as Error).message));
  }
}

export async function remove(id: string): Promise<void> {
  try {
    await deleteSession(id);
    const isShown = session.value === id;
    await refreshSessions();
    say('good', 'The session is deleted');
    if (isShown) {
      const next = sessions.value.find((one) => one.session !== id);
      if (next) go(next.session);
      else await create();
    }
  } catch (error) {
    say('bad', sentence((error as Error).message));
  }
}

// Talking.

export async function send(command: Command): Promise<Outcome> {
  const id = session.value;
  if (!id) return { refused: { reason: 'gone', message: 'no session is open' } };
  return ask(id, command);
}

export function refused(refusal: Refusal): void {
  say('bad', sentence(refusal.message) + (refusal.hint ? ` · ${refusal.hint}` : ''));
}

/** Does something of which there is nothing to tell. */
export async function quietly(command: Command): Promise<boolean> {
  const answer = await send(command);
  if (answer.refused) refused(answer.refused);
  return !answer.refused;
}

/** Says something. What is refused is not lost. */
export async function prompt(parts: Part[]): Promise<void> {
  notices.value = [];
  loaded = [];
  const answer = await send({ type: 'prompt', parts });
  if (answer.refused) {
    const box = composer();
    if (box?.isBlank()) box.set(parts);
    else say('warning', `Not said: ${parts.map(partName).join(' ').slice(0, 200)}`);
    refused(answer.refused);
  } else if (answer.ok.type === 'held') {
    const { count, request } = answer.ok;
    const actions = request === undefined ? [] : [{ text: 'Take back', run: () => void withdraw(request, parts) }];
    say('plain', `Held: said when the turn has ended (${count} waiting)`, actions);
  }
}

/** Takes a prompt back that is held: it is in the composer again. */
async function withdraw(request: string, parts: Part[]): Promise<void> {
  if ((await quietly({ type: 'withdraw', request })) && composer()?.isBlank()) composer()?.set(parts);
}

export async function interrupt(): Promise<void> {
  if (theView()?.state !== 'idle') await quietly({ type: 'interrupt' });
}

export async function refreshStore(): Promise<void> {
  const answer = await send({ type: 'store' });
  if (answer.ok?.type === 'store') store.value = { bytes: answer.ok.bytes, budget: answer.ok.budget };
}

// Drafts.

/** Puts what waits to be said into the composer. */
export function takeDraft(): void {
  const view = theView();
  if (!view || view.draft.length === 0) return say('plain', 'Nothing waits to be said');
  composer()?.set(view.draft);
  loaded = composer()?.parts() ?? [];
}

function isUntouched(): boolean {
  const box = composer();
  return !box || box.isBlank() || (loaded.length > 0 && JSON.stringify(box.parts()) === JSON.stringify(loaded));
}

/** What waits to be said has changed. What the user has typed stays. */
function draftChanged(isOwn: boolean): void {
  const view = theView();
  if (!view) return;
  // It is there already: this tab has been loaded again, say.
  if (view.draft.length > 0 && JSON.stringify(composer()?.parts()) === JSON.stringify(view.draft)) {
    loaded = view.draft;
    return;
  }
  if (isOwn && isUntouched()) {
    composer()?.set(view.draft);
    loaded = composer()?.parts() ?? [];
  } else if (view.draft.length === 0) {
    // An unedited draft that was taken back leaves the composer of whoever loaded it, too.
    if (loaded.length > 0 && isUntouched()) composer()?.set([]);
  } else {
    const why = isOwn ? 'Your text is kept. What was said then waits' : 'Another client went back. What was said then waits';
    say('plain', why, [{ text: 'Load it', run: takeDraft }]);
  }
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

function restoreTyped(id: string): void {
  try {
    const text = sessionStorage.getItem(typedKey(id));
    sessionStorage.removeItem(typedKey(id));
    if (text && composer()?.isBlank()) composer()?.set(JSON.parse(text) as Part[]);
  } catch {
    // Then there is nothing to restore.
  }
}

// Events.

function hear(event: Event, isOwn: boolean): void {
  switch (event.type) {
    case 'appended':
      if (event.entry.type === 'prompt') {
        // What was held is said now, or something else is: nothing can be taken back any more.
        notices.value = notices.value.filter((notice) => !notice.text.startsWith('Held:'));
        composer()?.remember(event.entry.parts);
        void refreshSessions();
      }
      break;
    case 'head_moved':
      if (!isOwn && event.operation !== null) say('plain', 'Another client changed the conversation');
      break;
    case 'draft_changed':
      draftChanged(isOwn);
      break;
    case 'retrying':
      say('warning', `${event.message}. Asking again in ${Math.ceil(event.after_ms / 1_000)} s (attempt ${event.attempt})`);
      break;
    case 'warning':
      say('warning', event.text);
      break;
    case 'returned':
      say('warning', 'What was held is not said, because the turn before it was stopped: it is the draft');
      break;
    case 'snapshot':
      if (event.error) say('warning', `No snapshot could be taken: ${event.error}`);
      break;
    case 'model_changed':
      say('plain', `${event.model} is asked from now on`);
      break;
    case 'turn_ended':
      turnEnded(event);
      break;
    default:
      break;
  }
}

function turnEnded(event: Extract<Event, { type: 'turn_ended' }>): void {
  void refreshStore();
  void refreshSessions();
  announced.value = event.reason === 'done' ? 'The turn has ended' : `The turn has ended: ${event.reason}`;
  if (event.taken_back) {
    const isLoaded = loaded.length > 0 && isUntouched();
    const place = isLoaded ? 'what you said is in the composer again' : 'what was said waits: /draft loads it';
    say(event.message ? 'bad' : 'plain', `${event.message ?? 'Nothing came of it'}; ${place}`);
  } else if (event.reason === 'interrupted') {
    say('plain', 'Stopped. Undo takes back what it did', [{ text: 'Undo', run: () => void undo() }]);
  } else if (event.reason === 'round_limit') {
    say('warning', event.message ?? 'The turn took too many rounds');
  }
}

// Going back.

/** Opens the plan of a change: what it would do, before anything is done. */
export function openPlan(change: Change, title: string): void {
  panel.value = { kind: 'plan', change, title };
}

/** Makes a change, once, unless the head is no longer at `seen`. Returns why not, if it was not made. */
export async function applyChange(change: Change, seen: EntryId | null, plan: RewindDocument | null = null): Promise<Refusal | null> {
  const view = theView();
  if (!view) return { reason: 'gone', message: 'no session is open' };
  if (applying.value) return { reason: 'running', message: 'another change is under way' };
  applying.value = true;
  try {
    const answer = await send({ type: 'apply', change, head_seen: { head: seen }, plan_seen: plan?.fingerprint ?? null, running: 'refuse' });
    if (answer.refused) return answer.refused;
    if (answer.ok.type === 'change') changed(change, answer.ok.document);
    void refreshStore();
    void refreshSessions();
    return null;
  } finally {
    applying.value = false;
  }
}

function changed(change: Change, document: RewindDocument): void {
  const [done, back] = change.do === 'undo' ? ['Undid', 'Redo'] : change.do === 'redo' ? ['Redid', 'Undo'] : ['Went back to', 'Undo'];
  const run = back === 'Redo' ? () => void redo() : () => void undo(document.operation);
  const actions = document.operation === null ? [] : [{ text: back, run }];
  say('good', `${done} ${document.what}: ${inFiles(document)}`, actions);
  composer()?.focus();
}

/** Takes back an operation, the newest for null; what has to be decided first is shown. */
export async function undo(operation: string | null = null): Promise<void> {
  await changeAtOnce({ do: 'undo', operation }, 'Undo');
}
export async function redo(): Promise<void> {
  await changeAtOnce({ do: 'redo' }, 'Redo');
}

async function changeAtOnce(change: Change, title: string): Promise<void> {
  const view = theView();
  const refusal = await applyChange(change, view && head(view));
  if (!refusal) return;
  if (refusal.reason === 'conflicts' || refusal.reason === 'stale_plan') openPlan(change, title);
  else refused(refusal);
}

export async function fork(entry: EntryId): Promise<void> {
  if (applying.value) return;
  applying.value = true;
  try {
    const answer = await send({ type: 'fork', entry });
    if (answer.refused) return refused(answer.refused);
    if (answer.ok.type !== 'forked') return;
    await refreshSessions();
    go(answer.ok.session);
    say('good', 'A new session from here; the other one stays as it is');
  } finally {
    applying.value = false;
  }
}

export async function summarise(extent: Extent, instructions: string | null = null): Promise<void> {
  if (applying.value) return;
  applying.value = true;
  try {
    const answer = await send({ type: 'summarise', extent, instructions });
    if (answer.refused) return refused(answer.refused);
    if (answer.ok.type !== 'summarised') return;
    const summary = answer.ok.summary;
    if (!summary) return say('plain', 'There was nothing to summarise');
    const [before, after] = summary.bytes;
    const saved = before > 0 ? Math.max(0, 100 - Math.floor((after * 100) / before)) : 0;
    say('good', `Summarised: the next request is ${saved} % shorter`, [
      { text: 'Undo', run: () => void undo(summary.operation) },
    ]);
  } finally {
    applying.value = false;
  }
}

export async function setLabel(entry: EntryId, label: string | null): Promise<boolean> {
  const answer = await send({ type: 'label', prompt: entry, label });
  if (answer.refused) refused(answer.refused);
  else if (label) say('good', `The point before the prompt is \`${label}\` now`);
  else say('good', 'The label is taken away');
  return !answer.refused;
}

/** Shows what a turn changed. */
export async function showTurnDiff(entry: EntryId): Promise<void> {
  const answer = await send({ type: 'diff', of: { what: 'turn', prompt: entry } });
  if (answer.refused) return refused(answer.refused);
  if (answer.ok.type !== 'diff') return;
  const number = theFacts().numbers.get(entry);
  const title = number ? `What turn ${number} changed` : 'What the turn changed';
  panel.value = { kind: 'diff', title, files: answer.ok.files, entry };
}

export function lastPrompt(): EntryId | null {
  return [...theFacts().numbers.keys()].at(-1) ?? null;
}

/** With a capital at its beginning. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
