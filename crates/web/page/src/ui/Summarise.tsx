// Before the model is asked for a summary: what it would stand for, and what it is to heed.

import { summarise } from '../changes';
import type { EntryId, Extent } from '../contract';
import { focusOnce } from '../focus';
import { applying, panel, theFacts, useView } from '../store';
import { textOf } from './PromptMenu';

const SHOWN = 8;

export function Summarise({ extent, prompts }: { extent: Extent; prompts: EntryId[] }) {
  const view = useView();
  const isRunning = view?.state === 'running';
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (isRunning || applying.value) return;
    const box = (event.currentTarget as HTMLFormElement).elements.namedItem('heed') as HTMLTextAreaElement;
    panel.value = null;
    void summarise(extent, box.value.trim() || null);
  };
  const numbers = theFacts().numbers;
  return (
    <form class="plan summarise" onSubmit={submit}>
      <p>
        The model writes a summary and from then on sees that instead of {prompts.length === 1 ? 'this turn' : `these ${prompts.length} turns`}. You
        still see everything, and can still rewind to every prompt.
      </p>
      <ul class="listed">
        {prompts.slice(0, SHOWN).map((entry) => (
          <li key={entry}>
            {numbers.get(entry)} “{textOf(entry)}”
          </li>
        ))}
        {prompts.length > SHOWN ? <li class="dim">… and {prompts.length - SHOWN} more</li> : null}
      </ul>
      <label>
        What the summary should focus on (optional)
        <textarea name="heed" rows={3} ref={focusOnce} />
      </label>
      <p class="dim">This costs one model request. The summary can be undone.</p>
      <div class="actions">
        <button type="submit" class="primary" aria-disabled={isRunning || applying.value}>
          Summarise
        </button>
        <button type="button" onClick={() => (panel.value = null)}>
          Cancel
        </button>
      </div>
    </form>
  );
}
