// The menu of a prompt: what can be done there, with what it would do in numbers, or why it cannot be done. The numbers are the plan's.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { fork } from '../actions';
import type { Refusal } from '../api';
import { openPlan, promptName, setLabel, showTurnDiff, stopThenPlan } from '../changes';
import type { EntryId, RewindDocument, Scope } from '../contract';
import { focusOnce } from '../focus';
import { points, said } from '../points';
import { send } from '../commands';
import { isMenuFresh, menuOf, menuOpener, panel, theFacts, theView, useView } from '../store';
import { count, sentence, willDo } from '../text/format';

const WAITING = 'planning …';
/** Why most cannot be done while a turn runs is told once, above all of it. */
const RUNS = '';

interface Item {
  key: string;
  title: string;
  /** What comes of it. */
  offer?: string;
  /** Why it cannot be done. */
  limit?: string | undefined;
  run: () => void;
}

export const SCOPES: [Scope, string][] = [
  ['both', 'Code and conversation'],
  ['conversation', 'Conversation only'],
  ['code', 'Code only'],
];

/** `before 3 “mend add”`. */
export function placeName(entry: EntryId): string {
  const number = theFacts().numbers.get(entry);
  return `before ${number ? `${number} ` : ''}“${textOf(entry)}”`;
}

/** The first line of a prompt, also of one that was left behind. */
export function textOf(entry: EntryId): string {
  const found = theView()?.entries[theFacts().at.get(entry) ?? -1];
  if (found?.type !== 'prompt') return said.get(entry)?.text ?? '…';
  const text = found.parts.map((part) => (part.type === 'text' ? part.text : '')).join(' ');
  return text.trim().split('\n')[0]?.slice(0, 120) || '…';
}

export function rewindTo(entry: EntryId, scope: Scope): void {
  openPlan({ do: 'rewind', entry, scope }, 'Rewind', placeName(entry));
}

export function PromptMenu() {
  const entry = menuOf.value;
  return entry ? <Menu key={entry} entry={entry} /> : null;
}

function Menu({ entry }: { entry: EntryId }) {
  const view = useView();
  const box = useRef<HTMLDivElement>(null);
  const [plan, setPlan] = useState<RewindDocument | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [alone, setAlone] = useState<RewindDocument | Refusal | null>(null);
  const [isLabelling, setLabelling] = useState(false);
  const state = view?.state;

  useEffect(() => {
    let isGone = false;
    void send({ type: 'plan', change: { do: 'rewind', entry, scope: 'both' } }).then((answer) => {
      if (isGone) return;
      setRefusal(answer.refused ?? null);
      if (answer.ok?.type === 'change') setPlan(answer.ok.document);
      // The files may be beyond reach, and the conversation not.
      else if (answer.refused) void conversation();
    });
    const conversation = async () => {
      const answer = await send({ type: 'plan', change: { do: 'rewind', entry, scope: 'conversation' } });
      if (!isGone) setAlone(answer.refused ? answer.refused : answer.ok.type === 'change' ? answer.ok.document : null);
    };
    return () => {
      isGone = true;
    };
  }, [entry, state]);

  const opener = () => menuOpener() ?? document.querySelector<HTMLElement>(`[data-menu="${CSS.escape(entry)}"]`);
  const close = (hasFocus: boolean) => {
    menuOf.value = null;
    if (hasFocus) opener()?.focus();
  };

  useLayoutEffect(() => {
    const [at, from] = [box.current, opener()?.getBoundingClientRect()];
    if (!at) return;
    place(at, from);
  });
  useLayoutEffect(() => box.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus(), []);
  useEffect(() => {
    const outside = (event: PointerEvent) => {
      const target = event.target as Element;
      if (!box.current?.contains(target) && !target.closest('[data-menu]')) menuOf.value = null;
    };
    addEventListener('pointerdown', outside, true);
    return () => removeEventListener('pointerdown', outside, true);
  }, []);

  const items = itemsOf(entry, { plan, refusal, alone }, () => setLabelling(true));
  const act = (item: Item) => {
    if (item.limit !== undefined) return;
    item.run();
    if (item.key !== 'l') close(false);
  };
  const key = (event: KeyboardEvent) => {
    const all = [...(box.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      close(true);
    } else if (isLabelling) {
      return;
    } else if (event.key === 'Tab') {
      close(true);
    } else if (to !== undefined) {
      event.preventDefault();
      all[to % all.length]?.focus();
    } else {
      const item = items.find((one) => one.key === event.key);
      if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act(item);
    }
  };
  const number = theFacts().numbers.get(entry);
  const title = number ? `Prompt ${number} “${textOf(entry)}”` : `“${textOf(entry)}”, left behind`;
  const isRunning = state === 'running';
  return (
    <div class="menu" ref={box} onKeyDown={key}>
      <p class="menu-title">{isLabelling ? `Label the point ${number ? `before ${number}` : 'before it'}` : title}</p>
      {isRunning && !isLabelling ? (
        <p class="menu-running warning" id="menu-running">
          A turn is running: stop it to rewind or summarise
        </p>
      ) : null}
      {isLabelling ? (
        <LabelForm entry={entry} done={() => close(true)} />
      ) : (
        <div role="menu" aria-label={title} aria-describedby={isRunning ? 'menu-running' : undefined}>
          {items.map((item) => (
            <button
              key={item.key}
              type="button"
              role="menuitem"
              tabIndex={-1}
              aria-disabled={item.limit !== undefined}
              onPointerMove={(event) => event.currentTarget.focus()}
              onClick={(event) => (event.detail > 0 && isMenuFresh() ? undefined : act(item))}
            >
              <kbd>{item.key}</kbd>
              <span>
                {item.title}
                <Remark item={item} />
              </span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function Remark({ item }: { item: Item }) {
  if (item.limit === RUNS) return null;
  return <small class={item.limit === undefined ? 'dim' : 'warning'}>{item.limit ?? item.offer}</small>;
}

/** Beside its button, never over it: whoever clicks twice must not hit what has come under the pointer. */
function place(menu: HTMLElement, button: DOMRect | undefined): void {
  menu.style.maxHeight = '';
  const { offsetWidth: width, offsetHeight: height } = menu;
  const from = button ?? new DOMRect(innerWidth / 2, 100, 0, 0);
  const [above, below] = [from.top - 12, innerHeight - from.bottom - 12];
  let left = Math.max(8, Math.min(from.right - width, innerWidth - width - 8));
  let top = from.bottom + 4;
  if (height > below && height <= above) top = from.top - height - 4;
  else if (height > below && from.left - 12 >= width) {
    left = from.left - width - 4;
    top = Math.max(8, Math.min(from.top, innerHeight - height - 8));
  } else if (height > below) {
    const room = Math.max(above, below);
    menu.style.maxHeight = `${room}px`;
    if (above > below) top = from.top - Math.min(height, room) - 4;
  }
  menu.style.left = `${left}px`;
  menu.style.top = `${Math.max(8, top)}px`;
}

/** What is known of going back there: with the files, or why not; then of the conversation alone. */
interface Known {
  plan: RewindDocument | null;
  refusal: Refusal | null;
  alone: RewindDocument | Refusal | null;
}

function itemsOf(entry: EntryId, { plan, refusal, alone }: Known, label: () => void): Item[] {
  const view = theView();
  const numbers = theFacts().numbers;
  const number = numbers.get(entry);
  const running = view?.state === 'running' ? RUNS : undefined;
  const elsewhere = number === undefined ? 'not in the conversation now' : undefined;
  const files = plan ? fileOffer(plan) : '';
  const isWaiting = plan === null && alone === null;
  const talk = plan ?? (alone && 'version' in alone ? alone : null);
  const prompts = talk ? promptsGo(talk) || 'no prompts change' : WAITING;
  const silent = alone && 'reason' in alone ? alone.message : undefined;
  const isBlocked = plan && plan.blocked.length > 0 ? 'a directory contains files that Retake did not capture, so it cannot be replaced' : undefined;
  const limit = running ?? refusal?.message ?? isBlocked;
  const nothing = plan && !willDo(plan) && plan.conflicts.length === 0 ? 'no files to change' : undefined;
  const all = [...numbers.keys()];
  const [before, from] = number === undefined ? [[], []] : [all.slice(0, number - 1), all.slice(number - 1)];
  const summarise = (part: 'from' | 'up_to', prompts: EntryId[], name: string) =>
    (panel.value = { kind: 'summarise', extent: { part, entry }, name, prompts });
  const items: Item[] = [
    { key: '1', title: 'Rewind code and conversation', offer: plan ? `${files}, ${prompts}` : WAITING, limit, run: () => rewindTo(entry, 'both') },
    { key: '2', title: 'Rewind conversation only', offer: isWaiting ? WAITING : `${prompts}; files stay as they are`, limit: running ?? silent, run: () => rewindTo(entry, 'conversation') },
    { key: '3', title: 'Rewind code only', offer: plan ? `${files}; the conversation stays` : WAITING, limit: limit ?? nothing, run: () => rewindTo(entry, 'code') },
    { key: '4', title: 'Fork from here', offer: 'new session from this point; files stay as they are now', run: () => void fork(entry) },
    {
      key: '5',
      title: 'Summarise from here…',
      offer: from.length === 1 ? 'the model sees a summary instead of this prompt' : `the model sees a summary instead of this and ${count(from.length - 1, 'later prompt', 'later prompts')}`,
      limit: running ?? elsewhere,
      run: () => summarise('from', from, `from ${number} on`),
    },
    {
      key: '6',
      title: 'Summarise up to here…',
      offer: before.length === 1 ? 'the model sees a summary instead of the prompt before' : `the model sees a summary instead of the ${before.length} prompts before`,
      limit: running ?? elsewhere ?? (before.length === 0 ? 'it is the first prompt' : undefined),
      run: () => summarise('up_to', before, `up to ${number}`),
    },
    { key: 'l', title: 'Label…', offer: 'name the point before this prompt', run: label },
    { key: 'd', title: 'Show diff', offer: 'what this turn changed', run: () => void showTurnDiff(entry) },
    { key: 'c', title: 'Compare…', offer: 'with another point, or with the files now', run: () => (panel.value = { kind: 'timeline', from: entry }) },
  ];
  if (running !== undefined) {
    const stop = () => void stopThenPlan(entry, () => rewindTo(entry, 'both'));
    items.unshift({ key: 's', title: 'Stop, then rewind…', offer: 'stops the turn and shows what a rewind would change', run: stop });
  }
  const end = elsewhere ? said.get(entry)?.end : null;
  if (end) items.unshift(toTheEnd(entry, end, running));
  return items;
}

/** A turn that was left behind has an end too. */
function toTheEnd(entry: EntryId, end: EntryId, running: string | undefined): Item {
  const isLast = ![...said.values()].some((other) => other.parent === entry);
  const title = isLast ? 'Go to the end of this attempt' : 'Go to the end of this turn';
  const name = `the end of “${textOf(entry)}”`;
  const run = () => openPlan({ do: 'rewind', entry: end, scope: 'both' }, 'Rewind', name);
  return { key: 'e', title, offer: 'brings back the prompt, its answer and the files of then', limit: running, run };
}

function fileOffer(plan: RewindDocument): string {
  const conflicts = plan.conflicts.length > 0 ? count(plan.conflicts.length, 'conflict', 'conflicts') : '';
  return [willDo(plan) || (conflicts ? '' : 'no file changes'), conflicts].filter(Boolean).join(', ');
}

/** What a plan does to the conversation: `removes 2 prompts`; nothing if it leaves it alone. */
export function promptsGo(plan: RewindDocument): string {
  const [leaves, returns] = [plan.conversation?.leaves.length ?? 0, plan.conversation?.returns.length ?? 0];
  const remove = leaves > 0 ? `removes ${count(leaves, 'prompt', 'prompts')}` : '';
  const bring = returns > 0 ? `brings back ${leaves > 0 ? returns : count(returns, 'prompt', 'prompts')}` : '';
  return [remove, bring].filter(Boolean).join(', ');
}

function LabelForm({ entry, done }: { entry: EntryId; done: () => void }) {
  const [why, setWhy] = useState('');
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const input = (event.currentTarget as HTMLFormElement).elements.namedItem('label') as HTMLInputElement;
    const refusal = await setLabel(entry, input.value.trim() || null);
    setWhy(refusal ? sentence(refusal.message) : '');
    if (!refusal) done();
  };
  const old = points.value.get(entry)?.label ?? said.get(entry)?.label ?? '';
  return (
    <form class="label-form" onSubmit={(event) => void submit(event)}>
      <input name="label" type="text" aria-label={`Label for the point before ${promptName(entry)}`} autocomplete="off" maxLength={100} defaultValue={old} ref={focusOnce} />
      <button type="submit" class="primary">
        Label
      </button>
      <small class="bad" role="alert">
        {why}
      </small>
      <small class="dim">Leave it empty to remove the label</small>
    </form>
  );
}
