// The checkpoints of the workspace: to look at, and to go back to.

import { useEffect, useState } from 'preact/hooks';

import { openPlan } from '../changes';
import type { CheckpointFacts } from '../contract';
import { refused, send } from '../commands';
import { age, count, filesChanged } from '../text/format';

export function Checkpoints() {
  const [list, setList] = useState<CheckpointFacts[] | null>(null);
  const [filter, setFilter] = useState('');
  useEffect(() => {
    void send({ type: 'checkpoints' }).then((answer) => {
      if (answer.refused) return refused(answer.refused);
      if (answer.ok.type === 'checkpoints') setList(answer.ok.checkpoints);
    });
  }, []);
  const name = (one: CheckpointFacts) => one.label ?? one.note ?? '';
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = (list ?? []).filter((one) => words.every((word) => `${one.checkpoint} ${name(one)}`.toLowerCase().includes(word)));
  const now = Date.now();
  return (
    <div class="timeline">
      <input type="search" aria-label="Search checkpoints" placeholder="Search checkpoints" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      {list === null ? <p class="dim">reading …</p> : null}
      <ol class="tree" aria-label="Checkpoints, newest first">
        {shown.slice(0, 300).map((one) => (
          <li key={one.checkpoint} class="tree-row">
            <span class="dot" aria-hidden="true" />
            <button
              type="button"
              class="point"
              onClick={() => openPlan({ do: 'checkpoint', checkpoint: one.checkpoint }, 'Rewind', nameOf(one))}
            >
              <span class="first">
                <code>{one.checkpoint.slice(0, 8)}</code> <span class="text">{name(one)}</span>
              </span>
              <span class="second dim">
                {age(one.at, now)}
                {filesChanged(one.changed) ? ` · ${filesChanged(one.changed)}` : ''}
                {one.gaps > 0 ? ` · ${count(one.gaps, 'file', 'files')} not captured` : ''}
              </span>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** `before “mend add”` for the checkpoint of a prompt, else `checkpoint “good”`; by its id only if it has no other name. */
function nameOf(one: CheckpointFacts): string {
  if (one.turn && one.note) return `before “${one.note.replace(/^> /, '')}”`;
  const words = one.label ?? one.note;
  return words ? `checkpoint “${words}”` : `checkpoint ${one.checkpoint.slice(0, 8)}`;
}
