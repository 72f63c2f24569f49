// The menu of a prompt: what can be done there, with what it would do in numbers, or why it cannot be done. The numbers are the plan's.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { fork, openPlan, RUNNING, send, setLabel, showTurnDiff, summarise } from '../actions';
import type { EntryId, Refusal, RewindDocument, Scope } from '../contract';
import { menuOf, menuOpener, panel, theFacts, theView, useView } from '../store';
import { count } from '../text/words';
import { focusOnce } from './focus';

const WAITING = 'working out what would change …';

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

/** How many paths a plan changes. */
export function changes(plan: RewindDocument): number {
  return plan.files.filter((file) => file.action !== 'unchanged').length;
}

/** `Rewind to before 3 “mend add”`. */
export function rewindTitle(entry: EntryId, text: string): string {
  const number = theFacts().numbers.get(entry);
  return `Rewind to before ${number ? `${number} ` : ''}“${text}”`;
}

export function textOf(entry: EntryId): string {
  const found = theView()?.entries[theFacts().at.get(entry) ?? -1];
  if (found?.type !== 'prompt') return '';
  const text = found.parts.map((part) => (part.type === 'text' ? part.text : '')).join(' ');
  return text.trim().split('\n')[0]?.slice(0, 120) ?? '';
}

export function rewindTo(entry: EntryId, scope: Scope, text: string): void {
  openPlan({ do: 'rewind', entry, scope }, rewindTitle(entry, text));
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
  const [isLabelling, setLabelling] = useState(false);
  const text = textOf(entry) || '…';
  const state = view?.state;

  useEffect(() => {
    let isGone = false;
    void send({ type: 'plan', change: { do: 'rewind', entry, scope: 'both' } }).then((answer) => {
      if (isGone) return;
      if (answer.refused) setRefusal(answer.refused);
      else if (answer.ok.type === 'change') setPlan(answer.ok.document);
    });
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
    const { offsetWidth: width, offsetHeight: height } = at;
    const left = Math.max(8, Math.min((from?.right ?? innerWidth / 2) - width, innerWidth - width - 8));
    const below = (from?.bottom ?? 100) + 4;
    const top = below + height > innerHeight - 8 ? Math.max(8, Math.min((from?.top ?? below) - height - 4, innerHeight - height - 8)) : below;
    at.style.left = `${left}px`;
    at.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`;
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

  const items = itemsOf(entry, text, plan, refusal, () => setLabelling(true));
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
  return (
    <div class="menu" ref={box} onKeyDown={key}>
      <p class="menu-title">{rewindTitle(entry, text)}</p>
      {isLabelling ? (
        <LabelForm entry={entry} done={() => close(true)} />
      ) : (
        <div role="menu" aria-label={rewindTitle(entry, text)}>
          {items.map((item) => (
            <button
              key={item.key}
              type="button"
              role="menuitem"
              tabIndex={-1}
              aria-disabled={item.limit !== undefined}
              onClick={() => act(item)}
            >
              <kbd>{item.key}</kbd>
              <span>
                {item.title}
                <small class={item.limit === undefined ? 'dim' : 'warning'}>{item.limit ?? item.offer}</small>
              </span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function itemsOf(entry: EntryId, text: string, plan: RewindDocument | null, refusal: Refusal | null, label: () => void): Item[] {
  const view = theView();
  const numbers = theFacts().numbers;
  const number = numbers.get(entry);
  const running = view?.state === 'running' ? RUNNING : undefined;
  const elsewhere = number === undefined ? 'it is not in the conversation now' : undefined;
  const files = plan ? fileOffer(plan) : '';
  const prompts = plan ? promptOffer(plan) : WAITING;
  const isBlocked = plan && plan.blocked.length > 0 ? 'a directory holds files that are not captured, so nothing can take its place' : undefined;
  const limit = running ?? refusal?.message ?? isBlocked;
  const nothing = plan && changes(plan) === 0 ? 'nothing to do, the files are there already' : undefined;
  const later = number === undefined ? 0 : numbers.size - number;
  const before = number === undefined ? 0 : number - 1;
  return [
    { key: '1', title: 'Code and conversation', offer: plan ? `${files}, ${prompts}` : WAITING, limit, run: () => rewindTo(entry, 'both', text) },
    { key: '2', title: 'Conversation only', offer: `${prompts}; files and side effects stay`, limit: running, run: () => rewindTo(entry, 'conversation', text) },
    { key: '3', title: 'Code only', offer: plan ? `${files}; the conversation stays` : WAITING, limit: limit ?? nothing, run: () => rewindTo(entry, 'code', text) },
    { key: '4', title: 'Fork from here', offer: 'a new session from here; this one stays as it is', run: () => void fork(entry) },
    {
      key: '5',
      title: 'Summarise from here',
      offer: later === 0 ? 'this prompt becomes a summary' : `this prompt and ${count(later, 'later one', 'later ones')} become one summary`,
      limit: running ?? elsewhere,
      run: () => void summarise({ part: 'from', entry }),
    },
    {
      key: '6',
      title: 'Summarise up to here',
      offer: before === 1 ? 'the prompt before it becomes a summary' : `the ${before} prompts before it become one summary`,
      limit: running ?? elsewhere ?? (before === 0 ? 'nothing was said before it' : undefined),
      run: () => void summarise({ part: 'up_to', entry }),
    },
    { key: 'l', title: 'Label', offer: 'name the point before it', run: label },
    { key: 'd', title: 'Show diff', offer: 'what its turn changed', run: () => void showTurnDiff(entry) },
    { key: 'c', title: 'Compare', offer: 'with any other point, or with now', run: () => (panel.value = { kind: 'timeline', from: entry }) },
  ];
}

function fileOffer(plan: RewindDocument): string {
  const files = changes(plan);
  if (files === 0) return 'no file changes';
  const conflicts = plan.conflicts.length;
  if (conflicts === 0) return `${count(files, 'file goes', 'files go')} back`;
  return `${count(files, 'file', 'files')}, ${count(conflicts, 'conflict', 'conflicts')} to decide`;
}

function promptOffer(plan: RewindDocument): string {
  const [leaves, returns] = [plan.conversation?.leaves.length ?? 0, plan.conversation?.returns.length ?? 0];
  if (leaves === 0 && returns === 0) return 'no prompt leaves';
  const leave = count(leaves, 'prompt leaves', 'prompts leave');
  if (returns === 0) return `${leave} the conversation`;
  if (leaves === 0) return count(returns, 'prompt comes back', 'prompts come back');
  return `${leave}, ${count(returns, 'comes back', 'come back')}`;
}

function LabelForm({ entry, done }: { entry: EntryId; done: () => void }) {
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const input = (event.currentTarget as HTMLFormElement).elements.namedItem('label') as HTMLInputElement;
    if (await setLabel(entry, input.value.trim() || null)) done();
  };
  return (
    <form class="label-form" onSubmit={(event) => void submit(event)}>
      <label>
        Label
        <input name="label" type="text" autocomplete="off" maxLength={100} ref={focusOnce} />
      </label>
      <button type="submit" class="primary">
        Label
      </button>
      <small class="dim">an empty one takes the label away</small>
    </form>
  );
}
