// The conversation: a list of which only what is near the screen is on the page.
//
// Whoever reads keeps their place: when something above changes its height, or text streams in below, the item at the top of the screen
// stays where it is; who is at the end stays at the end.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { Entry, View } from '../contract';
import { isUnseen } from '../facts';
import { current, entriesVersion, menuOf, theFacts, toggleMenu, useView } from '../store';
import { age } from '../text/words';
import { EntryBody, guess, isHidden, Thought } from './Entry';
import { Heights } from './heights';
import { Markdown } from './Markdown';
import { memo } from './memo';

interface Item {
  key: string;
  /** Where it is among the entries; -1 for what is live. */
  at: number;
}
const LIVE = 'live';
/** Pixels beyond the screen that are on the page. */
const MORE = 700;

/** What others may want of the list. */
export interface TranscriptPort {
  toEnd(): void;
  toTop(): void;
  show(key: string): void;
}
let port: TranscriptPort | null = null;
export function transcript(): TranscriptPort | null {
  return port;
}

function itemsOf(view: View | null): Item[] {
  const items: Item[] = [];
  view?.entries.forEach((entry, at) => {
    if (!isHidden(entry)) items.push({ key: entry.id, at });
  });
  items.push({ key: LIVE, at: -1 });
  return items;
}

/** What keeps the reader's place; it lives as long as the list. */
class Place {
  readonly heights = new Heights();
  items: Item[] = [];
  index = new Map<string, number>();
  isAtEnd = true;
  /** The item at the top of the screen, and how far into it the screen begins. */
  anchor: { key: string; offset: number } | null = null;
  written = -1;
  width = 0;
  window: [number, number] = [0, 0];
  wanted: string | null = null;
}

export function Transcript() {
  const view = useView();
  const entries = entriesVersion.value;
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const place = useRef<Place>(null);
  place.current ??= new Place();
  const here = place.current;
  const [, draw] = useState(0);
  const [isAtEnd, setAtEnd] = useState(true);

  const items = useMemo(() => itemsOf(view), [view, entries]);
  if (here.items !== items) {
    here.items = items;
    here.index = new Map(items.map((item, at) => [item.key, at]));
    const width = here.width || 800;
    here.heights.set(
      items.map((item) => item.key),
      items.map((item) => (item.at < 0 ? 16 : guess(view?.entries[item.at] as Entry, width))),
    );
    if (here.anchor && !here.index.has(here.anchor.key)) {
      here.isAtEnd = true;
      here.anchor = null;
    }
  }
  here.window = windowOf(here, box.current);

  const settle = () => {
    const [at, within] = [box.current, inner.current];
    if (!at || !within) return;
    for (const child of within.children) {
      const key = (child as HTMLElement).dataset['key'];
      const index = key === undefined ? undefined : here.index.get(key);
      if (key !== undefined && index !== undefined) here.heights.measure(key, index, child.getBoundingClientRect().height);
    }
    const [first, last] = here.window;
    within.style.paddingTop = `${here.heights.top(first)}px`;
    within.style.paddingBottom = `${here.heights.total() - here.heights.top(last)}px`;
    const index = here.anchor ? here.index.get(here.anchor.key) : undefined;
    const top = here.isAtEnd || index === undefined ? at.scrollHeight - at.clientHeight : here.heights.top(index) + (here.anchor?.offset ?? 0);
    if (Math.abs(at.scrollTop - top) > 0.5) at.scrollTop = top;
    here.written = at.scrollTop;
    const now = windowOf(here, at);
    if (now[0] < first || now[1] > last) draw((count) => count + 1);
    if (here.wanted) focusWanted(here, within);
    if (isAtEnd !== here.isAtEnd) setAtEnd(here.isAtEnd);
  };
  const latest = useRef(settle);
  latest.current = settle;
  useLayoutEffect(settle);

  useEffect(() => {
    const [at, within] = [box.current, inner.current];
    if (!at || !within) return undefined;
    const observer = new ResizeObserver(() => {
      if (Math.abs(at.clientWidth - here.width) > 1) {
        here.width = at.clientWidth;
        here.heights.forget();
      }
      latest.current();
    });
    observer.observe(at);
    observer.observe(within);
    const children = new MutationObserver((changes) => {
      for (const change of changes) {
        for (const node of change.addedNodes) if (node instanceof Element) observer.observe(node);
        for (const node of change.removedNodes) if (node instanceof Element) observer.unobserve(node);
      }
    });
    for (const child of within.children) observer.observe(child);
    children.observe(within, { childList: true });
    const mine: TranscriptPort = {
      toEnd: () => {
        here.isAtEnd = true;
        latest.current();
      },
      toTop: () => {
        at.scrollTop = 0;
      },
      show: (key) => {
        here.isAtEnd = false;
        here.anchor = { key, offset: -Math.min(120, at.clientHeight / 4) };
        here.wanted = key;
        latest.current();
        draw((count) => count + 1);
      },
    };
    port = mine;
    return () => {
      observer.disconnect();
      children.disconnect();
      // The list of the next session may be there already.
      if (port === mine) port = null;
    };
  }, []);

  const scrolled = () => {
    const at = box.current;
    if (!at) return;
    if (Math.abs(at.scrollTop - here.written) >= 1) {
      here.written = at.scrollTop;
      here.isAtEnd = at.scrollTop + at.clientHeight >= at.scrollHeight - 4;
      const index = here.heights.at(at.scrollTop);
      here.anchor = { key: here.items[index]?.key ?? LIVE, offset: at.scrollTop - here.heights.top(index) };
    }
    if (isAtEnd !== here.isAtEnd) setAtEnd(here.isAtEnd);
    const now = windowOf(here, at);
    if (now[0] < here.window[0] || now[1] > here.window[1] || now[1] - now[0] + 20 < here.window[1] - here.window[0]) {
      draw((count) => count + 1);
    }
  };

  const facts = theFacts();
  const now = Date.now();
  const [first, last] = here.window;
  const total = items.length - 1;
  return (
    <div class="transcript">
      <div class="scroll" ref={box} onScroll={scrolled} tabIndex={0} role="region" aria-label="Conversation">
        <div class="inner" ref={inner} role="feed" aria-label="Entries" aria-busy={view?.state === 'running'}>
          {view
            ? items.slice(first, last).map((item, offset) =>
                item.at < 0 ? (
                  <Live key={LIVE} view={view} total={total} />
                ) : (
                  <Row
                    key={item.key}
                    entry={view.entries[item.at] as Entry}
                    call={callOf(view.entries, item.at)}
                    position={first + offset + 1}
                    total={total}
                    number={facts.numbers.get(item.key) ?? 0}
                    isUnseen={isUnseen(facts, item.at)}
                    isCurrent={current.value === item.key}
                    isMenuOpen={menuOf.value === item.key}
                    when={age((view.entries[item.at] as Entry).at, now)}
                    range={rangeOf(view.entries[item.at] as Entry)}
                  />
                ),
              )
            : null}
        </div>
      </div>
      {view && total === 0 && view.state === 'idle' ? <Welcome workspace={view.workspace} /> : null}
      {isAtEnd ? null : (
        <button type="button" class="to-end" onClick={() => port?.toEnd()}>
          ↓ newest
        </button>
      )}
    </div>
  );
}

function windowOf(here: Place, box: HTMLDivElement | null): [number, number] {
  const height = box?.clientHeight || 800;
  const total = here.heights.total();
  const index = here.anchor ? here.index.get(here.anchor.key) : undefined;
  const top = here.isAtEnd || index === undefined ? total - height : here.heights.top(index) + (here.anchor?.offset ?? 0);
  return here.heights.range(top, top + height, MORE);
}

function focusWanted(here: Place, inner: HTMLElement): void {
  const found = inner.querySelector<HTMLElement>(`[data-key="${here.wanted}"]`);
  if (!found) return;
  here.wanted = null;
  found.focus({ preventScroll: true });
}

/** How many entries a summary stands for. */
function rangeOf(entry: Entry): number {
  if (entry.type !== 'summary') return 0;
  const at = theFacts().at;
  const [from, to] = [at.get(entry.from), at.get(entry.to)];
  return from === undefined || to === undefined ? 0 : to - from + 1;
}

type Call = { name: string; arguments: string };
const NO_CALL: Call = { name: '', arguments: '' };

/** The call that an entry is the result of. */
function callOf(entries: Entry[], at: number): Call {
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

const Row = memo(function Row(props: {
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
}) {
  const { entry } = props;
  const isPrompt = entry.type === 'prompt';
  const name = isPrompt ? `Prompt ${props.number}` : NAMES[entry.type];
  return (
    <article
      class={`row e-${entry.type} ${props.isUnseen ? 'unseen' : ''} ${props.isCurrent ? 'current' : ''}`}
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
      </div>
    </article>
  );
});

/** What is coming and what runs, below the last entry. Text that is coming looks like the reply that it becomes. */
function Live({ view, total }: { view: View; total: number }) {
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

function Welcome({ workspace }: { workspace: string }) {
  return (
    <div class="welcome">
      <h2>Say what is to be done</h2>
      <p>
        in <code>{workspace}</code>
      </p>
      <p class="dim">
        Every prompt becomes a point you can go back to: the files, the conversation, or both. <kbd>?</kbd> lists all keys.
      </p>
    </div>
  );
}
