// Keys of the page, wherever nothing is being typed.

import { interrupt } from './actions';
import { planNewest, showTurnDiff } from './changes';
import { isText } from './focus';
import { composer, current, finding, isUnderWay, menuOf, panel, sidebarOpen, theFacts, theView, toggleMenu, transcript } from './store';

/** Goes to the prompt before or after the current one. */
export function stepPrompt(by: number): void {
  const all = [...theFacts().numbers.keys()];
  const at = current.value === null ? -1 : all.indexOf(current.value);
  const next = at < 0 ? all.at(-1) : all[Math.max(0, Math.min(at + by, all.length - 1))];
  if (!next) return;
  current.value = next;
  transcript()?.show(next);
}

/** The prompt that keys are about: the chosen one, else the last. */
function prompt(): string | null {
  const all = theFacts().numbers;
  return current.value !== null && all.has(current.value) ? current.value : ([...all.keys()].at(-1) ?? null);
}

/** Goes to a prompt and opens its menu. */
export function openMenu(entry: string): void {
  const button = () => document.querySelector<HTMLElement>(`.transcript [data-menu="${CSS.escape(entry)}"]`);
  if (current.value !== entry || !button()) {
    current.value = entry;
    transcript()?.show(entry);
  }
  requestAnimationFrame(() => toggleMenu(entry, button()));
}

/** Opens the list of sessions and puts the focus into its search before the next key. */
export function searchSessions(): void {
  sidebarOpen.value = true;
  // After the list is drawn, which is a microtask too.
  queueMicrotask(() => document.querySelector<HTMLInputElement>('#session-search')?.focus());
}

/** Closes what is open, the topmost first. Returns whether there was something. */
function close(): boolean {
  if (menuOf.value !== null) menuOf.value = null;
  else if (finding.value) finding.value = false;
  else if (panel.value !== null) panel.value = null;
  else if (sidebarOpen.value) sidebarOpen.value = false;
  else return false;
  return true;
}

export function listenToKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if (event.altKey && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) {
      event.preventDefault();
      return stepPrompt(event.key === 'ArrowUp' ? -1 : 1);
    }
    if (event.key === 'Escape') {
      if (close()) return event.preventDefault();
      if (isUnderWay(theView())) return void interrupt();
      return composer()?.focus();
    }
    if (isText(event.target) || event.ctrlKey || event.metaKey || event.altKey) return undefined;
    const isButton = event.target instanceof HTMLElement && Boolean(event.target.closest('button, a, summary, [role=alertdialog]'));
    const act = actions[event.key];
    if (!act || (event.key === 'Enter' && isButton)) return undefined;
    if ((event.target as HTMLElement).closest?.('[role=alertdialog]')) return undefined;
    event.preventDefault();
    act();
    return undefined;
  });
}

const actions: Record<string, () => void> = {
  '?': () => (panel.value = { kind: 'help' }),
  i: () => composer()?.focus(),
  Enter: () => composer()?.focus(),
  j: () => stepPrompt(1),
  k: () => stepPrompt(-1),
  r: () => {
    const entry = prompt();
    if (entry) openMenu(entry);
  },
  d: () => {
    const entry = prompt();
    if (entry) void showTurnDiff(entry);
  },
  t: () => (panel.value = { kind: 'timeline' }),
  // A single key shows what it would do before it does it.
  u: () => void planNewest('Undo'),
  U: () => void planNewest('Redo'),
  '/': () => (finding.value = true),
  s: searchSessions,
  g: () => transcript()?.toTop(),
  G: () => transcript()?.toEnd(),
  o: () => {
    const folds = [...document.querySelectorAll<HTMLDetailsElement>('.transcript details.fold')];
    const isOpen = folds.some((fold) => !fold.open);
    for (const fold of folds) fold.open = isOpen;
  },
};
