// What can be done from the page, in the words of the terminal: sessions, saying, stopping, and what is heard of it. Plans, diffs,
// conflicts and refusals are the session's: nothing about a rewind is worked out here.

import { batch } from '@preact/signals';

import { deleteSession, isOf, isOwn as isFromHere, newSession } from './api';
import { isMarked } from './backButton';
import { dropBars, forgetOperations, refreshOperations, restoreBar, sayBar } from './changes';
import type { EntryId, Event, Part } from './contract';
import { DRAFT, draftChanged, giveBack, isLeft, isLoaded, lose, meetDraft, moveTo, regain, takeSource, wasSaid } from './drafts';
import { drop, dropWhere, inSession, notices, say } from './notices';
import { forgetPoints, refreshPoints, refreshStore } from './points';
import { ask, quietly, refused, send } from './commands';
import { refreshSessions } from './sessionList';
import {
  announced,
  applying,
  beginWork,
  composer,
  forget,
  held,
  isUnderWay,
  link,
  panel,
  session,
  sessions,
  sidebarOpen,
  takeEvent,
  takeView,
  theFacts,
  theView,
} from './store';
import { Stream } from './stream';
import { sentence } from './text/format';
import { beginSaying } from './unsent';
import { head } from './view';

let stream: Stream | null = null;
/** What came up to this event had happened before this page knew of the session: nobody need be told. */
let old = 0;
/** A view may be a little older than the session: what waits to be said is looked at when everything up to this event is known. */
let meets: number | null = null;

function meet(): void {
  if (meets === null || (theView()?.seq ?? 0) < meets) return;
  meets = null;
  meetDraft();
}

// Sessions.

/** Begins: the session of the address, else one that is open, else the newest, else a new one. */
export async function begin(): Promise<void> {
  addEventListener('hashchange', () => void open(fromAddress()));
  // Others begin and delete sessions too.
  addEventListener('focus', () => {
    void refreshSessions();
    if (theView()) void refreshOperations();
  });
  await refreshSessions();
  const wanted = fromAddress();
  if (wanted) return open(wanted);
  const list = sessions.value;
  const first = list.find((one) => one.live) ?? list[0];
  // The way back leads out of the page, not to an address without a session.
  if (first) replace(first.session);
  else if (link.value.kind !== 'shut') await create(replace);
}

function fromAddress(): string | null {
  return /^#\/s\/([\w-]+)$/.exec(location.hash)?.[1] ?? null;
}

function replace(id: string): void {
  history.replaceState(null, '', `#/s/${id}`);
  open(id);
}

export function go(id: string): void {
  // The place in the history of what covers the conversation becomes that of the other session: going back from it would undo the way there.
  const isThere = fromAddress() === id;
  if (!isThere && isMarked()) history.replaceState(null, '', `#/s/${id}`);
  else if (!isThere) location.hash = `#/s/${id}`;
  batch(() => {
    if (!isThere) panel.value = null;
    sidebarOpen.value = false;
  });
  open(id);
}

function open(id: string | null): void {
  if (!id || id === session.value) return;
  moveTo(id, () => {
    stream?.stop();
    forget();
    // What is told belongs to a session; this is what the way to this one told.
    notices.value = notices.value.filter((notice) => notice.about === inSession(id));
    forgetPoints();
    forgetOperations();
    old = 0;
    session.value = id;
  });
  let newest = 0;
  meets = null;
  stream = new Stream(id, {
    view: (view) => {
      const isFirst = takeView(view);
      // What this tab has said and is not held any more was said, or waits.
      if (view.held < held.value.length) held.value = held.value.slice(held.value.length - view.held);
      meets = newest;
      meet();
      if (isFirst) {
        for (const entry of view.entries) if (entry.type === 'prompt') composer()?.remember(entry.parts);
        composer()?.focus();
        // While a turn runs, what was done before it is not the last.
        if (isUnderWay(view)) void refreshOperations();
        else void restoreBar(id);
        void refreshStore();
        refreshPoints();
      } else refreshAll();
    },
    began: (seq) => {
      newest = seq;
      if (theView() === null) old = seq;
    },
    event: (event) => {
      takeEvent(event, hear);
      meet();
    },
    link: (next) => {
      link.value = next;
      if (next.kind === 'missing') lose(id);
      // One in which nothing was ever said goes with its server; there is nothing to miss in it.
      if (next.kind === 'missing' && theView()?.entries.length === 0) void create();
      if (next.kind !== 'open') return;
      regain(id);
      drop('gone');
      // What was asked while it was cut off was not answered.
      if (theView()) refreshAll();
    },
    seen: () => theView()?.seq ?? null,
  });
}

/** Asks again for all that is not told by events. */
function refreshAll(): void {
  void refreshOperations();
  void refreshStore();
  refreshPoints();
}

export function reconnect(): void {
  if (link.value.kind === 'waiting') stream?.hurry();
  else location.reload();
}

export async function create(show: (id: string) => void = go): Promise<void> {
  const from = session.value;
  try {
    const id = await newSession();
    await refreshSessions();
    // Whoever has gone elsewhere meanwhile finds it in the list.
    if (session.value === from) show(id);
  } catch (error) {
    say('bad', sentence((error as Error).message));
  }
}

/** Goes to a session in which nothing was said yet, if there is one; else begins one. */
export async function fresh(): Promise<void> {
  const from = session.value;
  await refreshSessions();
  // A choice that was made meanwhile is the later one.
  if (session.value !== from) return;
  const isTyped = (id: string) => id === session.value && !(composer()?.isBlank() ?? true);
  const empty = sessions.value.find((one) => one.prompts === 0 && !one.title && !one.draft && !one.forked_from && !isTyped(one.session));
  if (!empty) return create();
  go(empty.session);
  composer()?.focus();
}

export async function remove(id: string): Promise<void> {
  try {
    await deleteSession(id);
    const isShown = session.value === id;
    lose(id);
    await refreshSessions();
    const next = sessions.value.find((one) => one.session !== id);
    if (isShown && next) go(next.session);
    else if (isShown) await create();
    say('good', 'The session is deleted', [], isShown && next ? inSession(next.session) : '');
  } catch (error) {
    say('bad', sentence((error as Error).message));
  }
}

export async function fork(entry: EntryId): Promise<void> {
  const from = session.value;
  if (applying.value || !from) return;
  const ended = beginWork(from, 'Fork');
  try {
    const title = theFacts().title;
    const answer = await send({ type: 'fork', entry });
    if (answer.refused) return refused(answer.refused);
    if (answer.ok.type !== 'forked') return;
    await refreshSessions();
    // Whoever has gone elsewhere meanwhile finds it in the list.
    if (session.value !== from) return;
    go(answer.ok.session);
    const back = sessions.value.some((one) => one.session === from) ? [{ text: 'Back to it', run: () => go(from) }] : [];
    say('good', `You are in a fork of “${title}”. Files stay as they are now`, back, inSession(answer.ok.session));
  } finally {
    ended();
  }
}

// Talking.

/** Says something. What is refused is in the composer of its session again. */
export async function prompt(parts: Part[]): Promise<void> {
  const id = session.value;
  if (!id) return;
  // What waits to be said waits all the same.
  dropWhere((notice) => notice.about !== DRAFT);
  const draft = takeSource();
  const view = theView();
  const answered = beginSaying(id, { parts, head: view && head(view), draft });
  const answer = await ask(id, { type: 'prompt', parts, ...(draft && { draft }) });
  // A page that goes hears no answers: whoever comes back sees what came of it.
  if (answer.refused?.reason === 'gone' && isLeft()) return;
  if (answer.refused) {
    giveBack(id, parts, draft);
    answered();
    if (session.value === id) return refused(answer.refused);
    return say('warning', `Not sent in the session that you were in: ${answer.refused.message}. It is in the composer there`);
  }
  answered();
  if (answer.ok.type === 'held' && session.value === id) {
    const { request } = answer.ok;
    // It may have been said before its answer came.
    const isWaiting = (theView()?.held ?? 0) > 0;
    if (request && isWaiting) held.value = [...held.value, { request, parts }];
  }
}

/** Takes a prompt back that is held: it is in the composer again, before what was typed meanwhile. */
export async function withdraw(request: string, parts: Part[]): Promise<void> {
  const id = session.value;
  if (!id || !(await quietly({ type: 'withdraw', request }))) return;
  held.value = held.value.filter((one) => one.request !== request);
  giveBack(id, parts);
  if (session.value === id) composer()?.focus();
}

export async function interrupt(): Promise<void> {
  if (theView()?.state !== 'idle') await quietly({ type: 'interrupt' });
}

// Events.

/** The last time that the conversation became another one: a draft of the same request is what was said there. */
let moved: Event | null = null;

/** Something happened. Whoever only catches up with it is told nothing. */
function hear(event: Event): void {
  const isOwn = isFromHere(event.request);
  const isNews = event.seq > old;
  if (event.type === 'head_moved') moved = event;
  if (event.type === 'draft_changed') return draftChanged(isOwn, isNews, moved !== null && moved.request === event.request);
  if (event.type === 'appended') return appended(event, isNews);
  if (!isNews) return undefined;
  switch (event.type) {
    case 'head_moved':
      headMoved(event, isOwn);
      break;
    case 'held':
      if (event.count === 0) held.value = [];
      break;
    case 'retrying':
      say('warning', `${event.message}. Asking again in ${Math.ceil(event.after_ms / 1_000)} s (attempt ${event.attempt})`, [], 'retrying');
      break;
    case 'state_changed':
      if (event.state !== 'running') drop('retrying');
      break;
    case 'warning':
      say('warning', event.text);
      break;
    case 'returned':
      held.value = held.value.filter((one) => !isOf(event.request, one.request));
      say('warning', 'The queued prompt was not sent, because the turn before it was stopped: it is the draft');
      break;
    case 'snapshot':
      if (event.error) say('warning', `No snapshot could be taken: ${event.error}`, [], 'snapshot');
      else drop('snapshot');
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
  return undefined;
}

function appended(event: Extract<Event, { type: 'appended' }>, isNews: boolean): void {
  const { entry } = event;
  if (entry.type === 'prompt') {
    composer()?.remember(entry.parts);
    held.value = held.value.filter((one) => !isOf(event.request, one.request));
    wasSaid(entry.parts);
    if (!isNews) return;
    dropBars();
    void refreshSessions();
  } else if (isNews && (entry.type === 'note' || entry.type === 'summary' || entry.type === 'cleared')) {
    void refreshOperations();
  }
  if (entry.type === 'reply') drop('retrying');
}

function headMoved(event: Extract<Event, { type: 'head_moved' }>, isOwn: boolean): void {
  const { at } = theFacts();
  // What was offered about a turn goes with it.
  dropWhere((notice) => notice.turn !== undefined && !at.has(notice.turn));
  if (!isOwn && event.operation !== null) say('plain', 'Another client changed the conversation', [], 'moved');
  void refreshOperations();
  refreshPoints();
}

function turnEnded(event: Extract<Event, { type: 'turn_ended' }>): void {
  refreshAll();
  void refreshSessions();
  announced.value = event.reason === 'done' ? 'The turn has ended' : `The turn has ended: ${event.reason}`;
  if (event.taken_back) {
    const place = isLoaded() ? 'your prompt is back in the composer' : 'your prompt is the draft: /draft loads it';
    say(event.message ? 'bad' : 'plain', `${event.message ?? 'Stopped before the model answered'}; ${place}`);
  } else if (event.reason === 'interrupted' && event.operation && theFacts().at.has(event.prompt)) {
    // One that was undone at once has left before its end is told.
    sayBar(event.operation, 'Undo', 'Turn stopped', event.prompt);
  } else if (event.reason === 'round_limit') {
    say('warning', event.message ?? 'The turn took too many rounds');
  }
}
