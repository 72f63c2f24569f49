// Going back, and taking that back: plans, changes, and the bars and buttons that undo or redo one certain operation. What an operation
// is about, and whether it is still the newest, is the session's to tell.

import { signal } from '@preact/signals';

import { refreshSessions } from './sessionList';
import type { Refusal } from './api';
import type { Change, EntryId, Extent, OperationFacts, RewindDocument } from './contract';
import { takeOffer } from './drafts';
import { rememberFocus } from './focus';
import { dropWhere, isBar, notices, say } from './notices';
import { refreshPoints, refreshStore } from './points';
import { liveQuery } from './liveQuery';
import { quietly, refused, send } from './commands';
import { applying, beginWork, composer, panel, session, theFacts, theView, transcript, type Verb, type Wanted } from './store';
import { actionDone, changedFiles, inFiles, type Left, leftBehind, operationName, pathText } from './text/format';
import { head } from './view';

export const RUNNING = 'a turn is running: stop it first, or wait until it has ended';

/** What the plan that is shown would do, once it is known better than by what was asked for. */
export const planTitle = signal<string | null>(null);

/** What undo and redo are about now. */
export const operations = signal<{ undo: OperationFacts | null; redo: OperationFacts | null }>({ undo: null, redo: null });
const standing = liveQuery({ type: 'operations' }, (reply) => {
  if (reply.type !== 'operations') return;
  const { undo, redo } = reply;
  operations.value = { undo, redo };
  const kept = new Set([undo?.operation, redo?.operation].map((id) => bar(id ?? '')));
  dropWhere((notice) => isBar(notice) && !kept.has(notice.about));
});

/** Asks again what undo and redo are about. A bar about anything else goes. */
export const refreshOperations = standing.ask;

export function forgetOperations(): void {
  standing.forget();
  operations.value = { undo: null, redo: null };
}

interface Bar {
  operation: string;
  verb: 'Undo' | 'Redo';
  text: string;
  left?: Left[];
}
const bar = (operation: string) => `op:${operation}`;
const barKey = (id: string) => `retake-bar-${id}`;

/** A bar that takes back one operation. There is one at a time, and this tab remembers it. What failed before it is over. */
export function sayBar(operation: string, verb: 'Undo' | 'Redo', text: string, turn?: EntryId, left: Left[] = []): void {
  dropWhere((notice) => isBar(notice) || (notice.about === '' && notice.tone !== 'plain' && notice.tone !== 'good'));
  const beside = takeOffer();
  const run = () => void takeBack(operation, verb);
  say(tone(left), text + beside.text, [{ text: verb, run }, ...beside.actions], bar(operation), turn, left);
  if (session.value) rememberBar(session.value, { operation, verb, text, left });
}

/** A change that left something behind is no plain success. */
const tone = (left: Left[]) => (left.length > 0 ? 'warning' : 'good');

function rememberBar(id: string, known: Bar): void {
  try {
    sessionStorage.setItem(barKey(id), JSON.stringify(known));
  } catch {
    // Then a reload forgets it; the buttons above do the same.
  }
}

/** Another turn begins: what was offered to be taken back is no longer the last. */
export function dropBars(): void {
  dropWhere(isBar);
}

/** After a reload: the bar that was there, if it is still about what was done last. */
export async function restoreBar(id: string): Promise<void> {
  await refreshOperations();
  if (session.value !== id || notices.value.some(isBar)) return;
  try {
    const known = JSON.parse(sessionStorage.getItem(barKey(id)) ?? 'null') as Bar | null;
    const { undo, redo } = operations.value;
    const newest = known?.verb === 'Redo' ? redo : undo;
    if (known && newest?.operation === known.operation) sayBar(known.operation, known.verb, known.text, undefined, known.left);
    else sessionStorage.removeItem(barKey(id));
  } catch {
    // Then there is nothing to restore.
  }
}

/** Opens the plan of a change: what it would do, before anything is done. */
export function openPlan(change: Change, verb: Verb, name: string): void {
  if (change.do === 'rewind') transcript()?.hold(change.entry);
  planTitle.value = null;
  panel.value = { kind: 'plan', wanted: byName({ change, verb, name }) };
}

/** Opens the plan of undoing what was done last, or of redoing what was undone last, as the session knows it now: what this tab knew may
 * be undone already. */
export async function planNewest(verb: 'Undo' | 'Redo'): Promise<void> {
  const here = session.value;
  await refreshOperations();
  if (session.value !== here) return;
  if (verb === 'Undo') openPlan({ do: 'undo' }, verb, 'the last turn or rewind');
  else openPlan({ do: 'redo' }, verb, 'what was undone last');
}

/** Undo of whatever was done last is undo of that, by its name. */
function byName(wanted: Wanted): Wanted {
  const { change } = wanted;
  const { undo: newest, redo: undone } = operations.value;
  if (change.do === 'redo' && undone) return { ...wanted, name: nameOf(undone.operation) };
  if (change.do !== 'undo' || change.operation || !newest) return wanted;
  return { ...wanted, change: { ...change, operation: newest.operation }, name: nameOf(newest.operation) };
}

/** How long a turn may take to stop before nobody waits for its end any more. */
const STOPS_MS = 20_000;

/** Stops the turn, waits for its end, and opens the plan of going back to before a prompt. */
export async function stopThenPlan(entry: EntryId, open: () => void): Promise<void> {
  const here = session.value;
  const wasHere = theFacts().numbers.has(entry);
  if (!(await quietly({ type: 'interrupt' }))) return;
  const isStill = () => {
    const view = theView();
    return view !== null && (view.state === 'running' || view.questions.length > 0);
  };
  const until = Date.now() + STOPS_MS;
  while (isStill() && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
  // A turn of which nothing came is taken back with its prompt: then there is nothing to go back to.
  if (session.value === here && !isStill() && (!wasHere || theFacts().numbers.has(entry))) open();
}

/** Makes a change, once, unless the head is no longer at `seen`. Returns why not, if it was not made. */
export async function applyChange(wanted: Wanted, seen: EntryId | null, plan: RewindDocument | null = null): Promise<Refusal | null> {
  const id = session.value;
  if (!theView() || !id) return { reason: 'gone', message: 'no session is open' };
  if (applying.value) return { reason: 'running', message: 'another change is under way' };
  const ended = beginWork(id, wanted.verb);
  const isFocusThere = rememberFocus();
  try {
    const { change } = wanted;
    const answer = await send({ type: 'apply', change, head_seen: { head: seen }, plan_seen: plan?.fingerprint ?? null, running: 'refuse' });
    if (answer.refused) return answer.refused;
    if (answer.ok.type === 'change') changed(id, wanted, answer.ok.document);
    // The events of the change precede its answer, so the user may have gone on to something else.
    if (answer.ok.type === 'change' && session.value === id && isFocusThere()) composer()?.focus();
    void refreshStore();
    void refreshSessions();
    refreshPoints();
    return null;
  } finally {
    ended();
  }
}

function changed(id: string, wanted: Wanted, document: RewindDocument): void {
  const { verb } = wanted;
  const [text, left] = [outcome(wanted, document), leftBehind(document)];
  // Whoever is in another session meanwhile finds the bar when they come back.
  if (session.value !== id) {
    if (document.operation !== null && verb !== 'Redo') rememberBar(id, { operation: document.operation, verb: verb === 'Undo' ? 'Redo' : 'Undo', text, left });
    return;
  }
  if (document.operation === null) say(tone(left), text, [], '', undefined, left);
  else if (verb === 'Undo') sayBar(document.operation, 'Redo', text, undefined, left);
  // What a redo repeats is taken back by its own name.
  else if (verb === 'Redo') void redone(text, left);
  else sayBar(document.operation, 'Undo', text, undefined, left);
  if (verb !== 'Redo') void refreshOperations();
}

/** What was done: to which half, and which one stays. */
export function outcome({ verb, name, change }: Wanted, document: RewindDocument): string {
  const files = inFiles(document);
  const stays = document.conversation_moved === false ? '. The conversation stays where it is' : '';
  if (verb === 'Undo' || verb === 'Redo') return `${verb === 'Undo' ? 'Undid' : 'Redid'} ${operationName(document.what)}: ${files}${stays}`;
  const [only, ...others] = changedFiles(document.files);
  if (change.paths?.length && only && others.length === 0) {
    const isDone = only.status === 'done' || only.status === 'displaced';
    return isDone ? `${pathText(only.path)} ${actionDone(only.action)}` : `${pathText(only.path)}: ${files}`;
  }
  // What was not done is not said to be.
  if (verb === 'Restore' && document.operation === null) return `${name}: ${files}`;
  if (verb === 'Restore' || change.do !== 'rewind') return `${verb === 'Restore' ? 'Restored' : 'Rewound to'} ${name}: ${files}`;
  if (document.scope === 'conversation') return `Rewound the conversation to ${name}. Files stay as they are`;
  if (document.scope === 'code' || stays) return `Rewound the files to ${name}: ${files}. The conversation stays as it is`;
  return `Rewound files and conversation to ${name}: ${files}`;
}

async function redone(text: string, left: Left[]): Promise<void> {
  await refreshOperations();
  const newest = operations.value.undo;
  if (newest) sayBar(newest.operation, 'Undo', text, undefined, left);
  else say(tone(left), text, [], '', undefined, left);
}

/** Takes back the newest, or repeats what was taken back last; what has to be decided first is shown. */
export async function undo(): Promise<void> {
  await changeAtOnce({ change: { do: 'undo' }, verb: 'Undo', name: 'the last turn or rewind' });
}
export async function redo(): Promise<void> {
  await changeAtOnce({ change: { do: 'redo' }, verb: 'Redo', name: 'what was undone last' });
}

/** Takes back or repeats one certain operation, and nothing else. */
export async function takeBack(operation: string, verb: 'Undo' | 'Redo'): Promise<void> {
  await changeAtOnce({ change: { do: 'undo', operation }, verb, name: nameOf(operation) });
}

function nameOf(operation: string): string {
  const { undo: one, redo: other } = operations.value;
  const found = [one, other].find((facts) => facts?.operation === operation);
  return found ? operationName(`${found.kind} ${found.what}`) : '';
}

async function changeAtOnce(wanted: Wanted): Promise<void> {
  const view = theView();
  const refusal = await applyChange(wanted, view && head(view));
  if (!refusal) return;
  void refreshOperations();
  if (refusal.reason === 'conflicts' || refusal.reason === 'stale_plan') openPlan(wanted.change, wanted.verb, wanted.name);
  else refused(refusal);
}

export async function summarise(extent: Extent, instructions: string | null = null): Promise<void> {
  const id = session.value;
  if (applying.value || !id) return;
  const ended = beginWork(id, 'Summary');
  try {
    const answer = await send({ type: 'summarise', extent, instructions });
    if (answer.refused) return refused(answer.refused);
    if (answer.ok.type !== 'summarised') return;
    const summary = answer.ok.summary;
    if (!summary) return say('plain', 'There was nothing to summarise');
    const [before, after] = summary.bytes;
    const saved = before > 0 ? Math.max(0, 100 - Math.floor((after * 100) / before)) : 0;
    const text = `Summarised: the next request is ${saved}% shorter`;
    if (session.value !== id) return rememberBar(id, { operation: summary.operation, verb: 'Undo', text });
    sayBar(summary.operation, 'Undo', text);
    void refreshOperations();
  } finally {
    ended();
  }
}

/** Names the point before a prompt. Returns why not, if it was not done. */
export async function setLabel(entry: EntryId, label: string | null): Promise<Refusal | null> {
  const answer = await send({ type: 'label', prompt: entry, label });
  if (answer.refused) return answer.refused;
  if (label) say('good', `Labelled the point before ${promptName(entry)}: “${label}”`);
  else say('good', 'Label removed');
  refreshPoints();
  return null;
}

/** Shows what a turn changed. */
export async function showTurnDiff(entry: EntryId): Promise<void> {
  const id = session.value;
  const answer = await send({ type: 'diff', of: { what: 'turn', prompt: entry } });
  if (session.value !== id) return;
  if (answer.refused) return refused(answer.refused);
  if (answer.ok.type !== 'diff') return;
  const number = theFacts().numbers.get(entry);
  const title = number ? `What turn ${number} changed` : 'What the turn changed';
  transcript()?.hold(entry);
  panel.value = { kind: 'diff', title, files: answer.ok.files, entry };
}

/** `prompt 5`; one that was left behind has no number. */
export function promptName(entry: EntryId): string {
  const number = theFacts().numbers.get(entry);
  return number ? `prompt ${number}` : 'the prompt';
}

export function lastPrompt(): EntryId | null {
  return [...theFacts().numbers.keys()].at(-1) ?? null;
}
