// A query that is sent again whenever the session has changed. Only the newest answer counts; a query that the server did not answer is sent
// again.

import type { Command, Reply } from './contract';
import { ask } from './commands';
import { link, session } from './store';

const PAUSE_MS = 1_000;

export interface LiveQuery {
  /** Ends when the newest answer is there, this one or one that was asked for meanwhile. */
  ask(): Promise<void>;
  /** Whatever is still answered does not count. */
  forget(): void;
}

export function liveQuery(command: Command, take: (reply: Reply) => void): LiveQuery {
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
