// Differences of a turn, or between two points; each file can be brought back alone.

import { useState } from 'preact/hooks';

import { openPlan } from '../changes';
import type { Bytes, EntryId, FileDiff } from '../contract';
import { count, pathKey, pathText } from '../text/words';
import { FileBox } from './Diff';
import { placeName } from './PromptMenu';

/** Exactly as it was before a prompt, whoever changed it since: what is compared need not be the session's own. */
function restore(entry: EntryId, path: Bytes): void {
  openPlan({ do: 'rewind', entry, scope: 'code', files: 'exact', paths: [path] }, 'Restore', `${pathText(path)} as it was ${placeName(entry)}`);
}

export function DiffList({ files, entry }: { files: FileDiff[]; entry: EntryId | null }) {
  const [shown, setShown] = useState(60);
  if (files.length === 0) return <p class="dim">No file differs</p>;
  const [added, removed] = [files.reduce((sum, file) => sum + file.added, 0), files.reduce((sum, file) => sum + file.removed, 0)];
  return (
    <section aria-label="Files that differ">
      <p class="dim">
        {count(files.length, 'file', 'files')}, +{added} −{removed}
      </p>
      {files.slice(0, shown).map((file) => (
        <div class="with-button" key={pathKey(file.path)}>
          <FileBox file={file} isOpen={files.length <= 12} />
          {entry ? (
            <button
              type="button"
              class="quiet only-this"
              onClick={() => restore(entry, file.path)}
            >
              Restore as it was before
            </button>
          ) : null}
        </div>
      ))}
      {files.length > shown ? (
        <button type="button" class="more" onClick={() => setShown(shown + 300)}>
          … and {files.length - shown} more files
        </button>
      ) : null}
    </section>
  );
}
