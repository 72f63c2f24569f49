// All prompts that were ever said in the session, as a tree of branches, newest first; any two points can be compared.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { go, refused, send } from '../actions';
import type { EntryId, FileDiff, Target, TreePrompt } from '../contract';
import { counts, said } from '../points';
import { entriesVersion, menuOf, toggleMenu, useView } from '../store';
import { age, counted } from '../text/words';
import { DiffList } from './DiffPanel';

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
  useEffect(() => input.current?.focus(), []);
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

  const rows = useMemo(() => treeRows(prompts ?? []), [prompts]);
  const fits = (row: TreeRow) => {
    const { prompt } = row;
    const text = [prompt.text, prompt.label ?? '', `#${prompt.number ?? ''}`, ...(prompt.files?.tools ?? [])].join('\n').toLowerCase();
    return words.every((word) => text.includes(word) || byFile.get(word)?.has(prompt.id));
  };
  const shown = words.length > 0 ? rows.filter(fits) : rows;
  const name = (entry: EntryId | null) => {
    const prompt = prompts?.find((one) => one.id === entry);
    return prompt ? `before ${prompt.number ?? 'left'} “${prompt.text.slice(0, 40)}”` : 'now';
  };
  const compare = async () => {
    const answer = await send({ type: 'diff', of: { what: 'between', from, to } });
    if (answer.refused) return refused(answer.refused);
    if (answer.ok.type === 'diff') setCompared({ files: answer.ok.files, from, to });
  };
  const keys = (event: KeyboardEvent) => {
    const all = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[data-menu]')];
    if (event.key === 'Enter' && event.target === input.current && all.length > 0) {
      event.preventDefault();
      all[0]?.click();
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
      {from !== null || to !== null ? (
        <div class="compare">
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
        </div>
      ) : null}
      {compared && compared.from === from && compared.to === to ? <DiffList files={compared.files} entry={from} /> : null}
      {prompts === null ? <p class="dim">reading …</p> : null}
      {prompts !== null && shown.length === 0 ? <p class="dim">{words.length > 0 ? 'nothing like it' : 'Nothing has been said in this session yet'}</p> : null}
      <ol class="tree" aria-label="Timeline, newest first">
        {shown.slice(0, limit).map((row) => (
          <Row
            key={row.prompt.id}
            row={row}
            when={age(row.prompt.at, now)}
            isGone={gone.has(row.prompt.id)}
            isFrom={from === row.prompt.id}
            isTo={to === row.prompt.id}
            setFrom={() => setFrom(from === row.prompt.id ? null : row.prompt.id)}
            setTo={() => setTo(to === row.prompt.id ? null : row.prompt.id)}
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

function Row(props: {
  row: TreeRow;
  when: string;
  isGone: boolean;
  isFrom: boolean;
  isTo: boolean;
  setFrom: () => void;
  setTo: () => void;
}) {
  const { prompt, depth, isBranch } = props.row;
  const files = prompt.files;
  const changed = counts(files);
  const tools = counted(files?.tools ?? []).join(' · ');
  const isLeft = prompt.number === null;
  return (
    <li class={`tree-row ${isLeft ? 'left' : ''} ${isBranch ? 'branch' : ''} depth-${Math.min(depth, 8)}`}>
      <span class="dot" aria-hidden="true" />
      <button
        type="button"
        class="point"
        data-menu={prompt.id}
        aria-haspopup="menu"
        aria-expanded={menuOf.value === prompt.id}
        onClick={(event) => toggleMenu(prompt.id, event.currentTarget)}
      >
        <span class="first">
          <span class="no">{prompt.number ?? <span class="dim">left behind</span>}</span>
          <span class="text">{prompt.text}</span>
        </span>
        <span class="second dim">
          <time dateTime={new Date(prompt.at).toISOString()}>{props.when}</time>
          {changed ? <span>{changed}</span> : null}
          {tools ? <span class="tools">{tools}</span> : null}
          {files?.ran_commands ? <span class="warning">! ran commands</span> : null}
          {props.isGone ? <span class="warning">files gone; conversation only</span> : null}
        </span>
      </button>
      {prompt.label ? <span class="label">{prompt.label}</span> : null}
      {prompt.forks.map((fork) => (
        <button key={fork} type="button" class="quiet" onClick={() => go(fork)}>
          ⑂ fork {fork.slice(0, 8)}
        </button>
      ))}
      <span class="ab">
        <button type="button" class="quiet" aria-pressed={props.isFrom} aria-label={`Compare from ${prompt.text}`} onClick={props.setFrom}>
          from
        </button>
        <button type="button" class="quiet" aria-pressed={props.isTo} aria-label={`Compare to ${prompt.text}`} onClick={props.setTo}>
          to
        </button>
      </span>
    </li>
  );
}
