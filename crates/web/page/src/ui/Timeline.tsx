// All prompts that were ever said in the session, as a tree of branches, newest first: one can go to each in the conversation, open its menu,
// and compare any two points.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { go } from '../actions';
import type { EntryId, FileDiff, Target, TreePrompt } from '../contract';
import { counts, said } from '../points';
import { refused, send } from '../commands';
import { current, entriesVersion, menuOf, panel, sessions, theFacts, toggleMenu, transcript, useView } from '../store';
import { age, counted } from '../text/format';
import { DiffList } from './DiffPanel';
import { titleOf } from './Sessions';

export interface TreeRow {
  prompt: TreePrompt;
  depth: number;
  /** Whether it begins a branch that was left behind. */
  isBranch: boolean;
}

/** Rows from the newest to the oldest: what is retained keeps its column, what was left behind is one further in. */
export function treeRows(prompts: TreePrompt[]): TreeRow[] {
  const children = new Map<EntryId | null, TreePrompt[]>();
  const known = new Set(prompts.map((prompt) => prompt.id));
  for (const prompt of prompts) {
    const parent = prompt.parent !== null && known.has(prompt.parent) ? prompt.parent : null;
    const list = children.get(parent);
    if (list) list.push(prompt);
    else children.set(parent, [prompt]);
  }
  const rows: TreeRow[] = [];
  const below = (parent: EntryId | null, depth: number) => {
    const list = children.get(parent) ?? [];
    // The one that goes on is what is retained, else the newest.
    const main = list.find((one) => one.number !== null) ?? list.at(-1);
    const order = list.filter((one) => one !== main);
    if (main) order.push(main);
    return order.map((prompt) => ({ prompt, depth: prompt === main ? depth : depth + 1, isBranch: prompt !== main }));
  };
  const waiting = below(null, 0).reverse();
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    rows.push(next);
    waiting.push(...below(next.prompt.id, next.depth).reverse());
  }
  return rows.reverse();
}

const AT_ONCE = 200;
const NAME_LENGTH = 40;

export function Timeline({ from: first }: { from: string | undefined }) {
  const view = useView();
  const entries = entriesVersion.value;
  const [prompts, setPrompts] = useState<TreePrompt[] | null>(null);
  const [gone, setGone] = useState<Set<EntryId>>(new Set());
  const [filter, setFilter] = useState('');
  const [byFile, setByFile] = useState<Map<string, Set<EntryId>>>(new Map());
  const [limit, setLimit] = useState(AT_ONCE);
  const [from, setFrom] = useState<EntryId | null>(first ?? null);
  const [to, setTo] = useState<EntryId | null>(null);
  const [compared, setCompared] = useState<{ files: FileDiff[]; from: EntryId | null; to: EntryId | null } | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const [asked, setAsked] = useState(0);

  useEffect(() => {
    let isGone = false;
    const work = async () => {
      const [tree, targets] = await Promise.all([send({ type: 'tree' }), send({ type: 'targets' })]);
      if (isGone) return;
      if (tree.refused) return refused(tree.refused);
      if (tree.ok.type === 'tree') {
        said.clear();
        for (const prompt of tree.ok.prompts) said.set(prompt.id, prompt);
        setPrompts(tree.ok.prompts);
      }
      if (targets.ok?.type === 'targets') setGone(new Set(targets.ok.targets.filter((one: Target) => !one.has_files).map((one) => one.id)));
    };
    void work();
    return () => {
      isGone = true;
    };
  }, [entries, view?.session, asked]);
  // Before the next key, and after the panel has remembered where the focus was.
  useLayoutEffect(() => queueMicrotask(() => input.current?.focus({ preventScroll: true })), []);
  const rows = useMemo(() => treeRows(prompts ?? []), [prompts]);
  // Where one is: the prompt that was chosen, else the one on the screen.
  const [onScreen] = useState(() => transcript()?.prompt() ?? null);
  const here = current.value !== null && theFacts().numbers.has(current.value) ? current.value : onScreen;
  const list = useRef<HTMLOListElement>(null);
  const isRead = prompts !== null;
  useLayoutEffect(() => {
    const at = rows.findIndex((row) => row.prompt.id === here);
    if (at >= limit) setLimit(at + AT_ONCE);
    const row = list.current?.querySelector('[aria-current]');
    const [place, room] = [row?.getBoundingClientRect(), list.current?.closest('.side-body')?.getBoundingClientRect()];
    if (place && room && (place.bottom > room.bottom || place.top < room.top)) row?.scrollIntoView({ block: 'center' });
  }, [isRead, here, limit]);
  // Labels and the like are no events: when the menu has closed, they may be others.
  useEffect(() => menuOf.subscribe((entry) => void (entry === null && setTimeout(() => setAsked((count) => count + 1), 300))), []);

  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  useEffect(() => {
    // A word may be in the path of a file that a turn changed: the session knows.
    const missing = words.filter((word) => !byFile.has(word));
    if (missing.length === 0) return undefined;
    const timer = setTimeout(async () => {
      const found = new Map(byFile);
      for (const word of missing) {
        const answer = await send({ type: 'targets', query: word });
        found.set(word, new Set(answer.ok?.type === 'targets' ? answer.ok.targets.map((one) => one.id) : []));
      }
      setByFile(found);
    }, 150);
    return () => clearTimeout(timer);
  }, [filter]);

  const fits = (row: TreeRow) => {
    const { prompt } = row;
    const text = [prompt.text, prompt.label ?? '', `#${prompt.number ?? ''}`, ...(prompt.files?.tools ?? [])].join('\n').toLowerCase();
    return words.every((word) => text.includes(word) || byFile.get(word)?.has(prompt.id));
  };
  const shown = words.length > 0 ? rows.filter(fits) : rows;
  const name = (entry: EntryId | null) => {
    const prompt = prompts?.find((one) => one.id === entry);
    if (!prompt) return 'now';
    const text = prompt.text.length > NAME_LENGTH ? `${prompt.text.slice(0, NAME_LENGTH)}…` : prompt.text;
    return `before ${prompt.number === null ? '' : `${prompt.number} `}“${text}”`;
  };
  const choose = (entry: EntryId) => {
    if (entry === from) setFrom(null);
    else if (entry === to) setTo(null);
    else if (from === null) setFrom(entry);
    else setTo(entry);
    setCompared(null);
  };
  const compare = async () => {
    const answer = await send({ type: 'diff', of: { what: 'between', from, to } });
    if (answer.refused) return refused(answer.refused);
    if (answer.ok.type === 'diff') setCompared({ files: answer.ok.files, from, to });
  };
  const keys = (event: KeyboardEvent) => {
    const all = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('.point')];
    // With the keyboard one comes here to go back: Enter is the menu, as in the terminal.
    const point = event.target === input.current ? all[0] : all.find((one) => one === event.target);
    if (event.key === 'Enter' && point) {
      event.preventDefault();
      point.parentElement?.querySelector<HTMLElement>('[data-menu]')?.click();
    }
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    const at = all.indexOf(document.activeElement as HTMLElement);
    event.preventDefault();
    const next = event.key === 'ArrowDown' ? at + 1 : at - 1;
    if (next < 0) input.current?.focus();
    else all[Math.min(next, all.length - 1)]?.focus();
  };
  const now = Date.now();
  return (
    <div class="timeline" onKeyDown={keys}>
      <input
        ref={input}
        type="search"
        aria-label="Search prompts, tools, labels and files"
        placeholder="Search prompts, tools, labels and files"
        value={filter}
        onInput={(event) => setFilter(event.currentTarget.value)}
      />
      <div class="compare">
        {from === null && to === null ? (
          <p class="dim">“compare” at two prompts shows what changed between them</p>
        ) : (
          <>
            <p>
              From <strong>{name(from)}</strong> to <strong>{name(to)}</strong>
            </p>
            <button type="button" class="primary" onClick={() => void compare()}>
              Compare
            </button>
            <button
              type="button"
              onClick={() => {
                setFrom(null);
                setTo(null);
                setCompared(null);
              }}
            >
              Clear
            </button>
          </>
        )}
      </div>
      {compared && compared.from === from && compared.to === to ? <DiffList files={compared.files} entry={from} /> : null}
      {prompts === null ? <p class="dim">reading …</p> : null}
      {prompts !== null && shown.length === 0 ? <p class="dim">{words.length > 0 ? 'No matches' : 'Nothing has been said in this session yet'}</p> : null}
      <ol class="tree branches" ref={list} aria-label="Timeline, newest first">
        {shown.slice(0, limit).map((row) => (
          <Row
            key={row.prompt.id}
            row={row}
            when={age(row.prompt.at, now)}
            isGone={gone.has(row.prompt.id)}
            isHere={row.prompt.id === here}
            isEnd={from === row.prompt.id ? 'from' : to === row.prompt.id ? 'to' : from === null ? 'compare' : 'to here'}
            choose={() => choose(row.prompt.id)}
          />
        ))}
      </ol>
      {shown.length > limit ? (
        <button type="button" class="more" onClick={() => setLimit(limit + 1_000)}>
          … and {shown.length - limit} more
        </button>
      ) : null}
    </div>
  );
}

/** Shows a prompt in the conversation. */
function show(entry: EntryId): void {
  current.value = entry;
  // Where the timeline covers the conversation, it has done its work.
  if (!matchMedia('(max-width: 52rem)').matches) return transcript()?.show(entry);
  panel.value = null;
  // It can be gone to when it is no longer covered.
  requestAnimationFrame(() => requestAnimationFrame(() => transcript()?.show(entry)));
}

function Row(props: {
  row: TreeRow;
  when: string;
  isGone: boolean;
  isHere: boolean;
  /** Which end of a comparison it is, or could become. */
  isEnd: 'from' | 'to' | 'compare' | 'to here';
  choose: () => void;
}) {
  const { prompt, depth, isBranch } = props.row;
  const files = prompt.files;
  const changed = counts(files);
  const tools = counted(files?.tools ?? []).join(' · ');
  const isLeft = prompt.number === null;
  const menu = useRef<HTMLButtonElement>(null);
  const open = () => toggleMenu(prompt.id, menu.current);
  const isChosen = props.isEnd === 'from' || props.isEnd === 'to';
  return (
    <li
      class={`tree-row ${isLeft ? 'left' : ''} ${isBranch ? 'branch' : ''} ${props.isHere ? 'here' : ''} depth-${Math.min(depth, 5)}`}
      aria-current={props.isHere ? 'location' : undefined}
    >
      <span class="dot" aria-hidden="true" />
      <button
        type="button"
        class="point"
        title={isLeft ? 'It is not in the conversation now' : 'Show it in the conversation'}
        onClick={() => (isLeft ? open() : show(prompt.id))}
      >
        <span class="first">
          {isLeft ? null : <span class="no">{prompt.number}</span>}
          <span class="text" dir="auto">
            {prompt.text}
          </span>
        </span>
        <span class="second dim">
          {isLeft ? <span>left behind</span> : null}
          <time dateTime={new Date(prompt.at).toISOString()}>{props.when}</time>
          {changed ? <span>{changed}</span> : null}
          {tools ? <span class="tools">{tools}</span> : null}
          {files?.ran_commands ? <span>ran commands</span> : null}
          {props.isGone ? <span class="warning">files gone; conversation only</span> : null}
        </span>
      </button>
      <span class="ab">
        <button
          type="button"
          class="quiet"
          aria-pressed={isChosen}
          title={isChosen ? 'Compare something else' : props.isEnd === 'compare' ? 'Compare the files from here on' : 'Compare the files up to here'}
          aria-label={`Compare ${props.isEnd === 'to' || props.isEnd === 'to here' ? 'to' : 'from'} ${prompt.text}`}
          onClick={props.choose}
        >
          {props.isEnd}
        </button>
        <button
          ref={menu}
          type="button"
          class="quiet"
          data-menu={prompt.id}
          aria-haspopup="menu"
          aria-expanded={menuOf.value === prompt.id}
          aria-label={`Rewind to before ${prompt.text}, and more`}
          title="Rewind, fork, label and more"
          onClick={open}
        >
          ↶
        </button>
      </span>
      {prompt.label || prompt.forks.length > 0 ? (
        <span class="marks">
          {prompt.label ? <span class="label">{prompt.label}</span> : null}
          {prompt.forks.map((fork) => (
            <button key={fork} type="button" class="quiet fork" title="Go to this fork" onClick={() => go(fork)}>
              <span class="tag">fork</span>
              {forkName(fork)}
            </button>
          ))}
        </span>
      ) : null}
    </li>
  );
}

function forkName(fork: string): string {
  const found = sessions.value.find((one) => one.session === fork);
  return found ? (found.draft ?? titleOf(found)) : 'that was deleted';
}
