// A row of the conversation: an entry, or what is coming.

import { showTurnDiff } from '../changes';
import type { Entry, View } from '../contract';
import { current, toggleMenu } from '../store';
import { EntryBody, Thought } from './Entry';
import { Markdown } from './Markdown';
import { memo } from './memo';

/** The key of what is below the last entry. */
export const LIVE = 'live';

export type Call = { name: string; arguments: string };
const NO_CALL: Call = { name: '', arguments: '' };

/** The call that an entry is the result of. */
export function callOf(entries: Entry[], at: number): Call {
  const result = entries[at];
  if (result?.type !== 'tool_result') return NO_CALL;
  for (let back = at - 1; back >= 0; back -= 1) {
    const entry = entries[back];
    if (entry?.type !== 'reply') continue;
    for (const block of entry.blocks) if (block.type === 'call' && block.id === result.call) return block;
    return NO_CALL;
  }
  return NO_CALL;
}

const NAMES: Record<Entry['type'], string> = {
  prompt: 'Prompt',
  reply: 'Reply',
  tool_result: 'Tool call',
  note: 'Note',
  instructions: 'Instructions',
  summary: 'Summary',
  cleared: 'Cleared',
  approved: 'Approval',
  ended: 'End of the turn',
};

export const Row = memo(function Row(props: {
  entry: Entry;
  call: Call;
  position: number;
  total: number;
  number: number;
  isUnseen: boolean;
  isCurrent: boolean;
  isMenuOpen: boolean;
  when: string;
  range: number;
  label: string;
  /** Of the end of a turn: its prompt, and what it changed. */
  turn: string;
  changed: string;
  isPointed: boolean;
}) {
  const { entry } = props;
  const isPrompt = entry.type === 'prompt';
  const name = isPrompt ? `Prompt ${props.number}` : NAMES[entry.type];
  return (
    <article
      class={`row e-${entry.type} ${props.isUnseen ? 'unseen' : ''} ${props.isCurrent ? 'current' : ''} ${props.isPointed ? 'pointed' : ''}`}
      data-key={entry.id}
      tabIndex={isPrompt ? 0 : -1}
      aria-posinset={props.position}
      aria-setsize={props.total}
      aria-label={name}
      onFocus={isPrompt ? () => (current.value = entry.id) : undefined}
    >
      <div class="body">
        {isPrompt ? (
          <header class="prompt-head">
            <span class="no">{props.number}</span>
            <time dateTime={new Date(entry.at).toISOString()} title={new Date(entry.at).toLocaleString()}>
              {props.when}
            </time>
            {props.label ? <span class="label">{props.label}</span> : null}
            {props.isUnseen ? <span class="dim">the model no longer sees it</span> : null}
            <button
              type="button"
              class="rewind"
              aria-haspopup="menu"
              aria-expanded={props.isMenuOpen}
              aria-label={`Rewind to before prompt ${props.number}, and more`}
              data-menu={entry.id}
              onClick={(event) => toggleMenu(entry.id, event.currentTarget)}
            >
              ↶ Rewind
            </button>
          </header>
        ) : null}
        <EntryBody entry={entry} tool={props.call.name} args={props.call.arguments} range={props.range} />
        {props.changed ? (
          <p class="turn-changed">
            <span class="dim">{props.changed}</span>
            <button type="button" class="quiet" aria-label="show diff of this turn" onClick={() => void showTurnDiff(props.turn)}>
              show diff
            </button>
          </p>
        ) : null}
      </div>
    </article>
  );
});

/** What is coming and what runs, below the last entry. Text that is coming looks like the reply that it becomes. */
export function Live({ view, total }: { view: View; total: number }) {
  const { text, thinking } = view.coming;
  const [isThinking, isTalking] = [Boolean(thinking.trim()), Boolean(text.trim())];
  const isWaiting = view.state === 'running' && !isThinking && !isTalking && view.calls.length === 0 && !view.summarising;
  return (
    <article class="row live" data-key={LIVE} aria-label="What is coming" aria-posinset={total + 1} aria-setsize={total + 1} tabIndex={-1}>
      <div class="body">
        {isThinking && isTalking ? <Thought id="live:thought" text={thinking} /> : null}
        {isThinking && !isTalking ? (
          <div class="thinking">
            <span>thinking…</span>
            <p>{thinking.trim().slice(-600)}</p>
          </div>
        ) : null}
        {isTalking ? <Markdown text={text} /> : null}
        {view.calls.map((call, at) => (
          <div key={`${call.call}:${at}`}>
            <span class="call">
              <span class="mark running" role="img" aria-label="running">
                ○
              </span>
              <span class="title">{call.title}</span>
              <span class="dim">running</span>
            </span>
            {call.output ? <pre class="out">{call.output.split('\n').slice(-8).join('\n')}</pre> : null}
          </div>
        ))}
        {view.summarising ? <p class="dim">· writing a summary…</p> : null}
        {isWaiting ? <p class="dim waiting">· waiting for the model…</p> : null}
        <div class="tail" aria-hidden="true" />
      </div>
    </article>
  );
}
