// Looking for words in the conversation. The browser's own search sees only what is near the screen.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { Entry } from '../contract';
import { entriesVersion, finding, theView } from '../store';
import { transcript } from './Transcript';
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
  useEffect(() => input.current?.focus(), []);
  const show = (to: number) => {
    if (found.length === 0) return;
    const next = (to + found.length) % found.length;
    setAt(next);
    transcript()?.point(found[next] as string);
  };
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
