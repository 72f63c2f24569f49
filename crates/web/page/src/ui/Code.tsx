// Code with colours, and a button that copies it.

import { useState } from 'preact/hooks';

import { highlight, type Token } from '../text/highlight';
import { memo } from './memo';

export const Code = memo(function Code({ text, language }: { text: string; language: string }) {
  return (
    <figure class="code">
      <figcaption>
        <span>{language || 'text'}</span>
        <Copy text={text} />
      </figcaption>
      <pre tabIndex={0}>
        <code>{highlight(text, language).map(token)}</code>
      </pre>
    </figure>
  );
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
