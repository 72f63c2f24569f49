// Unsent text of each session, for as long as this tab lives: through a reload, and while no server can keep it.

import type { EntryId, Part } from './contract';
import type { Known } from './composerText';

/** What the composer held, and the session's draft as it knew it. */
export interface Typed {
  parts: Part[];
  known: Known | null;
}

const typedKey = (id: string) => `retake-typed-${id}`;
const sayingKey = (id: string) => `retake-saying-${id}`;
/** The same as in the storage, for what does not fit there. */
const typed = new Map<string, Typed>();
/** What is being said: no answer has come. */
const saying = new Map<string, Saying[]>();

/** Something that is being said, where the conversation ended then, and the draft that it was made from. */
export interface Saying {
  parts: Part[];
  head: EntryId | null;
  draft: Part[] | null;
}

/** Keeps what is typed in a session; null for nothing. */
export function keepTyped(id: string, what: Typed | null): void {
  if (what) typed.set(id, what);
  else typed.delete(id);
  const isWhole = put(typedKey(id), what);
  // Images are large, and words are worth more.
  if (what && !isWhole) put(typedKey(id), { ...what, parts: what.parts.filter((part) => part.type !== 'image') });
}

export function typedIn(id: string): Typed | null {
  return typed.get(id) ?? get<Typed>(typedKey(id));
}

/** Something is being said, and belongs to the session's composer until it is answered: call what this returns then. */
export function beginSaying(id: string, what: Saying): () => void {
  const set = (list: Saying[]) => {
    saying.set(id, list);
    put(sayingKey(id), list.length > 0 ? list : null);
  };
  set([...(saying.get(id) ?? []), what]);
  return () => set((saying.get(id) ?? []).filter((one) => one !== what));
}

/** What was being said in a session when the page was loaded anew: nobody waits for its answer. Told once. */
export function takeUnanswered(id: string): Saying[] {
  if (saying.has(id)) return [];
  saying.set(id, []);
  const found = get<Saying[]>(sayingKey(id)) ?? [];
  put(sayingKey(id), null);
  return found;
}

function get<T>(key: string): T | null {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? 'null') as T | null;
  } catch {
    return null;
  }
}

/** Returns whether there was room for it. */
function put(key: string, value: unknown): boolean {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
