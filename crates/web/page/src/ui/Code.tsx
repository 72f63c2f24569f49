// Code with colours, and a button that copies it.

import { useRef, useState } from 'preact/hooks';

import { Colours, type Token } from '../text/highlight';
import { memo } from './memo';

export const Code = memo(function Code({ text, language }: { text: string; language: string }) {
  const colours = useRef<Colours>(null);
  colours.current ??= new Colours();
  const pieces = colours.current.take(text, language);
  return (
    <figure class="code">
      <figcaption>
        <span>{language || 'text'}</span>
        <Copy text={text} />
      </figcaption>
      <pre tabIndex={0}>
        <code>{pieces.length === 1 ? pieces[0]?.map(token) : pieces.map((tokens, at) => <Lines key={at} tokens={tokens} />)}</code>
      </pre>
    </figure>
  );
});

/** A piece of a long code: the browser, too, looks only at the last one again while it is coming. */
const Lines = memo(function Lines({ tokens }: { tokens: Token[] }) {
  return <span class="lines">{tokens.map(token)}</span>;
});

export function token([kind, text]: Token, key: number) {
  return kind === null ? text : <span key={key} class={`t-${kind}`}>{text}</span>;
}

function Copy({ text }: { text: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text).catch(() => {});
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="quiet" onClick={() => void copy()}>
      {isDone ? 'Copied' : 'Copy'}
    </button>
  );
}
