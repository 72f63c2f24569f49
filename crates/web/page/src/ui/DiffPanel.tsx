// Differences of a turn, or between two points; each file can be brought back alone.

import { useEffect, useState } from 'preact/hooks';

import { openPlan } from '../changes';
import type { Bytes, Change, EntryId, FileDiff } from '../contract';
import { send } from '../commands';
import { useView } from '../store';
import { count, pathKey, pathText } from '../text/format';
import { FileBox } from './Diff';
import { placeName } from './PromptMenu';

/** Exactly as before a prompt, whoever changed them since: what is compared need not be the session's own. */
const asBefore = (entry: EntryId, paths: Bytes[]): Change => ({ do: 'rewind', entry, scope: 'code', files: 'exact', paths });

function restore(entry: EntryId, path: Bytes): void {
  openPlan(asBefore(entry, [path]), 'Restore', `${pathText(path)} as it was ${placeName(entry)}`);
}

/** What bringing a file back would do to it now; the plan says which. */
const BRING: Record<string, string> = { restore: 'Restore as it was before', recreate: 'Recreate', delete: 'Delete new file', mode: 'Restore permissions' };

export function DiffList({ files, entry }: { files: FileDiff[]; entry: EntryId | null }) {
  const [shown, setShown] = useState(60);
  const actions = useActions(files, entry);
  if (files.length === 0) return <p class="dim">No files changed</p>;
  const [added, removed] = [files.reduce((sum, file) => sum + file.added, 0), files.reduce((sum, file) => sum + file.removed, 0)];
  return (
    <section aria-label="Changed files">
      <p class="dim">
        {count(files.length, 'file', 'files')} changed, +{added} −{removed}
      </p>
      {files.slice(0, shown).map((file) => {
        const bring = BRING[actions.get(pathKey(file.path)) ?? ''];
        return (
          <div class="with-button" key={pathKey(file.path)}>
            <FileBox file={file} isOpen={files.length <= 12} />
            {entry && bring ? (
              <button type="button" class="quiet only-this" aria-label={`${bring}: ${pathText(file.path)}`} onClick={() => restore(entry, file.path)}>
                {bring}
              </button>
            ) : null}
          </div>
        );
      })}
      {files.length > shown ? (
        <button type="button" class="more" onClick={() => setShown(shown + 300)}>
          Show {files.length - shown} more files
        </button>
      ) : null}
    </section>
  );
}

/** What the plan of going back would do to each of the files; those that are as they were then are not in it. */
function useActions(files: FileDiff[], entry: EntryId | null): Map<string, string> {
  const state = useView()?.state;
  const [actions, setActions] = useState(new Map<string, string>());
  useEffect(() => {
    if (!entry || files.length === 0) return undefined;
    let isGone = false;
    void send({ type: 'plan', change: asBefore(entry, files.map((file) => file.path)) }).then((answer) => {
      const plan = answer.ok?.type === 'change' ? answer.ok.document : answer.refused?.document;
      if (!isGone) setActions(new Map((plan?.files ?? []).map((file) => [pathKey(file.path), file.action ?? ''])));
    });
    return () => {
      isGone = true;
    };
  }, [files, entry, state]);
  return actions;
}
