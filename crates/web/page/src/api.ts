// What the page asks the server. Everything goes through here; nothing else calls `fetch`.

import type { Command, Reason, Refusal as Refused, Reply, SessionFacts } from './contract';
import { drop, say } from './notices';

/** What came of a command; `seq` is the last event before the answer, where the server knows it. */
/** Why a command was not carried out: the session says why, or nobody answered (`gone`). */
export type Refusal = Omit<Refused, 'reason'> & { reason: Reason | 'gone' };

export type Outcome = ({ ok: Reply; refused?: never } | { ok?: never; refused: Refusal }) & { seq?: number };

const HEADERS = { 'X-Retake': '1' };
/** Ids of this tab: nobody else's begin like it. It stays the same when the page is loaded again; a copy of a tab gets its own. */
const tab = tabName();
/** Of this load: no two requests have the same id, also if the tab has had others. */
const load = letters(3);
let sent = 0;

function letters(count: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(count)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function tabName(): string {
  const how = (performance.getEntriesByType('navigation')[0] as PerformanceNavigationTiming | undefined)?.type;
  try {
    const known = how === 'reload' || how === 'back_forward' ? sessionStorage.getItem('retake-tab') : null;
    const name = known ?? letters(8);
    sessionStorage.setItem('retake-tab', name);
    return name;
  } catch {
    return letters(8);
  }
}

/** A new id for a request. */
export function requestId(): string {
  sent += 1;
  return `${tab}-${load}-${sent}`;
}

/** Whether a request is one of this tab's; those of a shared connection come with something before them. */
export function isOwn(request: string | null | undefined): boolean {
  return request?.includes(tab) ?? false;
}

/** Whether an event came of the request with the id `own`. */
export function isOf(request: string | null | undefined, own: string): boolean {
  return request?.endsWith(own) ?? false;
}

/** Sends a command to a session. Never throws: a command that could not be sent is refused. */
export async function post(session: string, command: Command): Promise<Outcome> {
  const id = requestId();
  const answered = PATIENCE_MS[command.type] === undefined ? () => {} : late(command.type);
  try {
    const response = await fetch(`/api/sessions/${encodeURIComponent(session)}/commands`, {
      method: 'POST',
      headers: { ...HEADERS, 'Content-Type': 'application/json' },
      body: JSON.stringify({ id, command }),
      // A page that is left must still be able to keep what was typed.
      keepalive: command.type === 'draft' && JSON.stringify(command).length < 32_000,
    });
    if (!response.ok) return { refused: { reason: 'failed', message: await inWords(response) } };
    return (await response.json()) as Outcome;
  } catch {
    return { refused: { reason: 'gone', message: 'the server does not answer; nothing was done as far as this page knows' } };
  } finally {
    answered();
  }
}

/** How long the answer to what a user waits for may take, in milliseconds, before that is said. */
const PATIENCE_MS: Partial<Record<Command['type'], number>> = { prompt: 4_000, interrupt: 3_000, answer: 4_000, withdraw: 4_000 };

/** Says so if there is no answer for a while, and takes that back when there is one: call what this returns then. */
function late(what: Command['type']): () => void {
  const about = `late-${what}`;
  const name = { prompt: 'what you said', interrupt: 'Stop', answer: 'your answer' }[what as string] ?? 'this';
  const text = `The server has not answered to ${name} yet; it is still asked. If many tabs of it are open in this browser, close some`;
  const timer = setTimeout(() => say('warning', text, [], about), PATIENCE_MS[what]);
  return () => {
    clearTimeout(timer);
    drop(about);
  };
}

/** Why the server itself did not do something. */
export async function errorOf(response: Response): Promise<{ message: string; hint: string | null }> {
  return ((await response.json()) as { error: { message: string; hint: string | null } }).error;
}

async function inWords(response: Response): Promise<string> {
  const { message, hint } = await errorOf(response);
  return hint ? `${message} · ${hint}` : message;
}

/** A failed request to the server itself. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function call(method: string, path: string): Promise<Response> {
  const headers = method === 'GET' ? HEADERS : { ...HEADERS, 'Content-Type': 'application/json' };
  const init: RequestInit = { method, headers };
  if (method === 'POST') init.body = '{}';
  const response = await fetch(path, init).catch(() => {
    throw new ApiError(0, 'the server does not answer');
  });
  if (!response.ok) throw new ApiError(response.status, await inWords(response));
  return response;
}

/** All sessions, or those in which each word of `search` is found. */
export async function listSessions(search = ''): Promise<{ sessions: SessionFacts[]; workspace: string }> {
  const query = search ? `?search=${encodeURIComponent(search)}` : '';
  const response = await call('GET', `/api/sessions${query}`);
  return (await response.json()) as { sessions: SessionFacts[]; workspace: string };
}

export async function newSession(): Promise<string> {
  const response = await call('POST', '/api/sessions');
  return ((await response.json()) as { session: string }).session;
}

export async function deleteSession(session: string): Promise<void> {
  await call('DELETE', `/api/sessions/${encodeURIComponent(session)}`);
}
