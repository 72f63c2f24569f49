// What the page asks the server. Everything goes through here; nothing else calls `fetch`.

import type { Command, Refusal, Reply, Response as Answered, SessionFacts } from './contract';

/** What came of a command. */
export type Outcome = { ok: Reply; refused?: never } | { ok?: never; refused: Refusal };

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
export function isOwn(request: string | undefined): boolean {
  return request?.includes(tab) ?? false;
}

/** Whether an event came of the request with the id `own`. */
export function isOf(request: string | undefined, own: string): boolean {
  return request?.endsWith(own) ?? false;
}

/** Does something in a session. Never throws: what could not be asked is refused. */
export async function ask(session: string, command: Command): Promise<Outcome> {
  const id = requestId();
  try {
    const response = await fetch(`/api/sessions/${encodeURIComponent(session)}/commands`, {
      method: 'POST',
      headers: { ...HEADERS, 'Content-Type': 'application/json' },
      body: JSON.stringify({ id, command }),
      // A page that is left must still be able to keep what was typed.
      keepalive: command.type === 'draft' && JSON.stringify(command).length < 32_000,
    });
    const answer = (await body(response)) as Partial<{ ok: Reply; refused: Refusal }> & Partial<Answered>;
    if (answer.ok) return { ok: answer.ok };
    if (answer.refused) return { refused: answer.refused };
    return { refused: { reason: 'failed', message: problem(response, answer) } };
  } catch {
    return { refused: { reason: 'gone', message: 'the server does not answer; nothing was done as far as this page knows' } };
  }
}

/** Reads a body that should be JSON. */
async function body(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return { message: text.slice(0, 200) };
  }
}

function problem(response: Response, answer: unknown): string {
  const told = answer as { message?: string; error?: { message?: string; hint?: string | null } } | null;
  const error = told?.error;
  const said = told?.message ?? (error?.hint ? `${error.message} · ${error.hint}` : error?.message);
  if (response.status === 401 || response.status === 403) {
    return said || 'this tab is not let in: open the address that `retake serve` has printed';
  }
  return said || `the server answered ${response.status}`;
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

async function call(method: string, path: string): Promise<unknown> {
  const headers = method === 'GET' ? HEADERS : { ...HEADERS, 'Content-Type': 'application/json' };
  const init: RequestInit = { method, headers };
  if (method === 'POST') init.body = '{}';
  const response = await fetch(path, init).catch(() => {
    throw new ApiError(0, 'the server does not answer');
  });
  const answer = await body(response);
  if (!response.ok) throw new ApiError(response.status, problem(response, answer));
  const refused = (answer as { refused?: Refusal } | null)?.refused;
  if (refused) throw new ApiError(409, refused.message);
  return answer;
}

/** All sessions, or those in which each word of `search` is found. */
export async function listSessions(search = ''): Promise<{ sessions: SessionFacts[]; workspace: string }> {
  const query = search ? `?search=${encodeURIComponent(search)}` : '';
  const answer = (await call('GET', `/api/sessions${query}`)) as { sessions?: SessionFacts[]; workspace?: string };
  return { sessions: answer.sessions ?? [], workspace: answer.workspace ?? '' };
}

export async function newSession(): Promise<string> {
  return ((await call('POST', '/api/sessions')) as { session: string }).session;
}

export async function deleteSession(session: string): Promise<void> {
  await call('DELETE', `/api/sessions/${encodeURIComponent(session)}`);
}
