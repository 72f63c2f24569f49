// Looking for words in the conversation. The browser's own search sees only what is near the screen.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { Entry } from '../contract';
import { entriesVersion, finding, theView, transcript } from '../store';
import { isHidden } from './Entry';

/** The words of an entry, as they are read. */
export function wordsOf(entry: Entry): string {
  switch (entry.type) {
    case 'prompt':
      return entry.parts.map((part) => ('text' in part ? part.text : '')).join('\n');
    case 'reply':
      return entry.blocks.map((block) => (block.type === 'text' ? block.text : '')).join('\n');
    case 'tool_result':
      return [entry.title, ...entry.parts.map((part) => (part.type === 'text' ? part.text : ''))].join('\n');
    case 'note':
    case 'summary':
      return entry.text;
    default:
      return '';
  }
}

export function Find() {
  const entries = entriesVersion.value;
  const input = useRef<HTMLInputElement>(null);
  const [words, setWords] = useState('');
  const [at, setAt] = useState(0);
  const found = useMemo(() => {
    const query = words.trim().toLowerCase();
    if (!query) return [];
    const all = theView()?.entries ?? [];
    return all.filter((entry) => !isHidden(entry) && wordsOf(entry).toLowerCase().includes(query)).map((entry) => entry.id);
  }, [words, entries]);
  // Before the next key: an effect that waits for a frame would lose what is typed until then.
  useLayoutEffect(() => input.current?.focus(), []);
  const show = (to: number) => {
    if (found.length === 0) return;
    const next = (to + found.length) % found.length;
    setAt(next);
    transcript()?.point(found[next] as string);
  };
  const pointed = found[at] ?? null;
  useEffect(() => {
    const list = document.querySelector('.transcript .inner');
    const query = words.trim().toLowerCase();
    if (!list || !query) return undefined;
    let [unfolded, tries, isBrought, isDue, isGone] = [0, 0, false, false, false];
    const look = () => {
      if (isGone) return;
      isDue = false;
      const ranges = mark(list, query);
      if (!pointed || isBrought) return;
      unfolded = unfold(pointed, query, unfolded);
      const sight = bring(pointed, ranges);
      tries += sight === 'moved' ? 1 : 0;
      isBrought = sight === 'there' || tries >= MAX_TRIES;
      // What was opened may still be measured, and the place of the reader kept without regard to this.
      if (sight === 'moved' && !isBrought) due();
    };
    const due = () => {
      if (!isDue) requestAnimationFrame(look);
      isDue = true;
    };
    // Rows come and go while one scrolls, and are drawn after they were opened.
    const again = new MutationObserver(due);
    again.observe(list, { childList: true, subtree: true, characterData: true });
    due();
    return () => {
      isGone = true;
      again.disconnect();
      CSS.highlights?.delete('found');
    };
  }, [words, pointed]);
  // The newest first: it is nearest to where one is.
  useEffect(() => show(found.length - 1), [found]);
  useEffect(() => () => transcript()?.point(null), []);
  const key = (event: KeyboardEvent) => {
    if (event.key === 'Enter') {
      event.preventDefault();
      show(at + (event.shiftKey ? 1 : -1));
    } else if (event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      finding.value = false;
    }
  };
  return (
    <div class="find" role="search">
      <input
        ref={input}
        type="search"
        aria-label="Find in the conversation"
        placeholder="Find in the conversation"
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
        onKeyDown={key}
      />
      <span class="dim" role="status">
        {words.trim() ? (found.length === 0 ? 'No matches' : `${at + 1} of ${found.length}`) : ''}
      </span>
      <button type="button" class="quiet" aria-label="The one before" onClick={() => show(at - 1)}>
        ↑
      </button>
      <button type="button" class="quiet" aria-label="The next one" onClick={() => show(at + 1)}>
        ↓
      </button>
      <button type="button" class="quiet" aria-label="Close" onClick={() => (finding.value = false)}>
        ×
      </button>
    </div>
  );
}

const rowOf = (key: string) => document.querySelector<HTMLElement>(`.transcript [data-key="${CSS.escape(key)}"]`);

/** Opens what is folded in the row of an entry, if the words are in there; there are folds within folds. Returns how many times it did. */
function unfold(key: string, query: string, before: number): number {
  const row = rowOf(key);
  if (!row || before >= 3 || row.innerText.toLowerCase().includes(query)) return before;
  row.querySelectorAll<HTMLDetailsElement>('details.fold:not([open])').forEach((fold) => (fold.open = true));
  row.querySelectorAll<HTMLElement>('button.more:not([aria-expanded=true])').forEach((more) => more.click());
  return before + 1;
}

/** So many times words are brought into sight. */
const MAX_TRIES = 20;

/** Brings the words of a row into sight, if they are drawn and not there. */
function bring(key: string, ranges: Range[]): 'there' | 'moved' | 'not drawn' {
  const row = rowOf(key);
  const [place, box] = [ranges.find((range) => row?.contains(range.startContainer))?.getBoundingClientRect(), row?.closest('.scroll')];
  if (!place || !box || place.height === 0) return 'not drawn';
  const room = box.getBoundingClientRect();
  if (place.top >= room.top && place.bottom <= room.bottom) return 'there';
  box.scrollTop += place.top - room.top - room.height / 3;
  return 'moved';
}

/** Marks the words wherever they are on the page. */
function mark(list: Element, query: string): Range[] {
  const ranges: Range[] = [];
  const texts = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = (node.nodeValue ?? '').toLowerCase();
    for (let at = text.indexOf(query); at >= 0; at = text.indexOf(query, at + query.length)) {
      // Some letters have no lower case of the same length.
      if (at + query.length > (node.nodeValue ?? '').length) break;
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + query.length);
      ranges.push(range);
    }
  }
  if (CSS.highlights) CSS.highlights.set('found', new Highlight(...ranges));
  return ranges;
}
