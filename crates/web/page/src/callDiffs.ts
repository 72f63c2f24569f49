// What a call changed in its file, as the session knows it: whole lines, against the file as it was before. Asked for what is on the
// screen, once.

import { useEffect, useState } from 'preact/hooks';

import type { EntryId, FileDiff } from './contract';
import type { EntryOf } from './totals';
import { send } from './commands';
import { link, theFacts, theView } from './store';
import { type CallChange, fits } from './text/edits';

/** What scrolls by faster than this is not asked for. */
const PAUSE_MS = 120;
/** What nobody answered is asked again after this. */
const AGAIN_MS = 1_000;
/** So many are remembered. */
const MOST = 500;
const known = new Map<EntryId, FileDiff | null>();

/**
 * The whole lines that a call changed; null if they are not known, or not yet.
 *
 * The files just after a call are told before its result is:
 *
 *     … ── entry ── before the result ── result
 *          files before   files after
 *
 * so these two are compared. Where calls ran at the same time that may be another one's change: what does not fit what the model wrote is
 * not shown.
 */
export function useCallDiff(entry: EntryOf<'tool_result'>, change: CallChange): FileDiff | null {
  const [diff, setDiff] = useState(known.get(entry.id) ?? null);
  const isOpen = link.value.kind === 'open';
  useEffect(() => {
    const { id, parent: to } = entry;
    const from = to === null ? null : (theView()?.entries[theFacts().at.get(to) ?? -1]?.parent ?? null);
    if (from === null || !isOpen || known.has(id)) return undefined;
    let isGone = false;
    const work = async () => {
      const answer = await send({ type: 'diff', of: { what: 'between', from, to } });
      // Nobody answered: it is asked again, also if the stream was never cut off.
      if (answer.refused?.reason === 'gone') {
        if (!isGone) timer = setTimeout(() => void work(), AGAIN_MS);
        return;
      }
      const found = answer.ok?.type === 'diff' ? answer.ok.files.find((file) => fits(file, change)) : undefined;
      if (known.size >= MOST) known.clear();
      known.set(id, found ?? null);
      if (!isGone && found) setDiff(found);
    };
    let timer = setTimeout(() => void work(), PAUSE_MS);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [entry.id, isOpen]);
  return diff;
}
