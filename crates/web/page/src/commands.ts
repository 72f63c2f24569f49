// Sends commands to a session, and reports refusals.

import { type Outcome, post, type Refusal } from './api';
import type { Command } from './contract';
import { say } from './notices';
import { session, untilShown } from './store';
import { sentence } from './text/format';

/**
 * Sends a command and waits for its answer, and then until this page shows every event that precedes it: answers and events come over two
 * connections, in any order. While no events come, or for a session that is not shown, the answer is enough.
 */
export async function ask(id: string, command: Command): Promise<Outcome> {
  const answer = await post(id, command);
  if (answer.seq !== undefined) await untilShown(id, answer.seq);
  return answer;
}

export async function send(command: Command): Promise<Outcome> {
  const id = session.value;
  if (!id) return { refused: { reason: 'gone', message: 'no session is open' } };
  return ask(id, command);
}

export function refused(refusal: Refusal): void {
  say('bad', sentence(refusal.message) + (refusal.hint ? ` · ${refusal.hint}` : ''), [], refusal.reason === 'gone' ? 'gone' : '');
}

/** Does something of which there is nothing to tell. */
export async function quietly(command: Command): Promise<boolean> {
  const answer = await send(command);
  if (answer.refused) refused(answer.refused);
  return !answer.refused;
}
