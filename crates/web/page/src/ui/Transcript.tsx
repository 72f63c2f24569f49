// The conversation: a list of which only what is near the screen is on the page.
//
// Whoever reads keeps their place: when something above changes its height, or text streams in below, the item at the top of the screen
// stays where it is; who is at the end stays at the end.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { Entry, Target, View } from '../contract';
import { isUnseen } from '../totals';
import { counts, points } from '../points';
import { current, entriesVersion, menuOf, panel, setTranscript, theFacts, transcript, type TranscriptPort, useView } from '../store';
import { age } from '../text/format';
import { guess, isHidden } from './Entry';
import { Heights } from './heights';
import { callOf, Live, LIVE, Row } from './Row';

interface Item {
  key: string;
  /** Where it is among the entries; -1 for what is live. */
  at: number;
  /** The prompt whose turn it ends. */
  turn?: string;
  /** What that turn changed. */
  changed?: string;
}
/** Pixels beyond the screen that are on the page. */
const MORE = 700;

function itemsOf(view: View | null, known: Map<string, Target>): Item[] {
  const items: Item[] = [];
  /** Summaries, by the last entry that each stands for: that is where what it stands for ends. */
  const summaries = new Map<string, Item[]>();
  const retained = theFacts().at;
  let turn = '';
  view?.entries.forEach((entry, at) => {
    if (entry.type === 'summary' && entry.to !== view.entries[at - 1]?.id && retained.has(entry.to)) {
      summaries.set(entry.to, [...(summaries.get(entry.to) ?? []), { key: entry.id, at }]);
    }
  });
  const elsewhere = new Set([...summaries.values()].flat().map((item) => item.key));
  view?.entries.forEach((entry, at) => {
    if (entry.type === 'prompt') turn = entry.id;
    if (entry.type === 'ended') {
      const changed = counts(known.get(turn)?.files);
      if (changed || !isHidden(entry)) items.push({ key: entry.id, at, turn, changed });
    } else if (!isHidden(entry) && !elsewhere.has(entry.id)) items.push({ key: entry.id, at });
    items.push(...(summaries.get(entry.id) ?? []));
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
  const [pointed, setPointed] = useState<string | null>(null);

  const known = points.value;
  const items = useMemo(() => itemsOf(view, known), [view, entries, known]);
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
    // Who sees the end is there, however they came.
    if (panel.value === null && isEnd(at)) here.isAtEnd = true;
    if (isAtEnd !== isEnd(at)) setAtEnd(isEnd(at));
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
      hold: (key) => {
        const index = here.index.get(key);
        if (index === undefined) return;
        const offset = at.scrollTop - here.heights.top(index);
        // One that is not on the screen is held by nobody.
        if (offset > here.heights.height(index) || offset < -at.clientHeight) return;
        here.isAtEnd = false;
        here.anchor = { key, offset: Math.max(offset, -at.clientHeight / 2) };
      },
      prompt: () => {
        const numbers = theFacts().numbers;
        // By what is kept in its place: the width may be about to become another.
        const first = here.isAtEnd || !here.anchor ? undefined : here.index.get(here.anchor.key);
        const from = first === undefined ? here.items.length - 1 : here.heights.at(here.heights.top(first) + (here.anchor?.offset ?? 0) + at.clientHeight / 3);
        return here.items.slice(0, from + 1).findLast((item) => numbers.has(item.key))?.key ?? null;
      },
      point: (key) => {
        setPointed(key);
        if (key === null) return;
        here.isAtEnd = false;
        here.anchor = { key, offset: -at.clientHeight / 3 };
        latest.current();
        draw((count) => count + 1);
      },
    };
    setTranscript(mine);
    return () => {
      observer.disconnect();
      children.disconnect();
      // The list of the next session may be there already.
      if (transcript() === mine) setTranscript(null);
    };
  }, []);

  const scrolled = () => {
    const at = box.current;
    if (!at) return;
    if (Math.abs(at.scrollTop - here.written) >= 1) {
      here.written = at.scrollTop;
      here.isAtEnd = isEnd(at);
      const index = here.heights.at(at.scrollTop);
      here.anchor = { key: here.items[index]?.key ?? LIVE, offset: at.scrollTop - here.heights.top(index) };
    }
    if (isAtEnd !== isEnd(at)) setAtEnd(isEnd(at));
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
                    label={known.get(item.key)?.label ?? ''}
                    turn={item.turn ?? ''}
                    changed={item.changed ?? ''}
                    isPointed={pointed === item.key}
                  />
                ),
              )
            : null}
        </div>
      </div>
      {view && total === 0 && view.state === 'idle' ? <Welcome workspace={view.workspace} /> : null}
      {isAtEnd ? null : (
        <button type="button" class="to-end" onClick={() => transcript()?.toEnd()}>
          ↓ newest
        </button>
      )}
    </div>
  );
}

/** Whether the end is on the screen. */
function isEnd(box: HTMLElement): boolean {
  return box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
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
