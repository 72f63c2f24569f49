// The list of sessions, asked for anew whenever something may have changed it.

import { ApiError, listSessions } from './api';
import { drop, say } from './notices';
import { link, sessions, workspace } from './store';
import { sentence } from './text/format';

export async function refreshSessions(): Promise<void> {
  try {
    const list = await listSessions();
    sessions.value = list.sessions.slice().sort((one, other) => other.at - one.at);
    drop('sessions');
    workspace.value = list.workspace;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) link.value = { kind: 'shut' };
    else if (error instanceof ApiError && error.status === 0) setTimeout(() => void refreshSessions(), 2_000);
    else {
      say('bad', sentence(String((error as Error).message)), [], 'sessions');
      // A directory that is away may come back.
      setTimeout(() => void refreshSessions(), 5_000);
    }
  }
}
