// A question about the session that is asked anew whenever something has changed. Only the answer to the newest one counts, and one that
// the server did not answer is asked again: what it is about has changed all the same.

import type { Command, Reply } from './contract';
import { ask } from './sending';
import { link, session } from './store';

const PAUSE_MS = 1_000;

export interface Question {
  /** Ends when the newest answer is there, this one or one that was asked for meanwhile. */
  ask(): Promise<void>;
  /** Whatever is still answered does not count. */
  forget(): void;
}

export function question(command: Command, take: (reply: Reply) => void): Question {
  let asked = 0;
  let newest = 0;
  let latest: Promise<void> = Promise.resolve();
  const again = async (): Promise<void> => {
    const id = session.value;
    asked += 1;
    const mine = asked;
    newest = mine;
    if (!id) return;
    const answer = await ask(id, command);
    if (mine !== asked) return mine === newest ? undefined : latest;
    if (answer.ok) take(answer.ok);
    // While the stream is cut off nobody need try: everything is asked when it goes on.
    else if (answer.refused.reason === 'gone') setTimeout(() => mine === asked && link.value.kind === 'open' && void askAgain(), PAUSE_MS);
  };
  const askAgain = () => (latest = again());
  return { ask: askAgain, forget: () => void (asked += 1) };
}
