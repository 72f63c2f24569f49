// Differences as the session tells them: line by line, with the numbers of before and after. Long ones are shown in parts.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import type { DiffLine, FileDiff, HunkLines, Instead } from '../contract';
import { highlight, languageOf } from '../text/highlight';
import { changedParts, marked, type Range } from '../text/inlineDiff';
import { cleanLines, pathText } from '../text/format';
import { token } from './Code';
import { memo } from './memo';

const INSTEAD: Record<Instead, string> = {
  binary: 'binary file',
  too_large: 'too large to compare',
  directory: 'directory',
  mode: 'permissions only',
  unreadable: 'cannot be read',
};
/** Lines that are drawn at once. */
const AT_ONCE = 400;
/** Lines are coloured up to this many. */
const COLOURED = 1_500;

/** `+2 −1`. */
export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span class="counts" aria-label={`${added} lines added, ${removed} removed`}>
      <span class="plus">+{added}</span> <span class="minus">−{removed}</span>
    </span>
  );
}

/** A file and what changes in it. */
export const FileBox = memo(function FileBox(props: {
  file: FileDiff;
  letter?: string | undefined;
  letterName?: string | undefined;
  remark?: string | undefined;
  isOpen?: boolean;
  children?: ComponentChildren;
}) {
  const { file, letter, letterName, remark } = props;
  return (
    <details class="file" open={props.isOpen ?? true}>
      <summary>
        {letter ? (
          <abbr class={`letter l-${letter}`} title={letterName}>
            {letter}
          </abbr>
        ) : null}
        <span class="path">{pathText(file.path)}</span>
        {file.instead ? null : <Counts added={file.added} removed={file.removed} />}
        {file.about ? <span class="dim">{file.about}</span> : null}
        {remark ? <span class="dim">{remark}</span> : null}
      </summary>
      {props.children}
      <DiffLines file={file} />
    </details>
  );
});

/** The lines alone. */
export const DiffLines = memo(function DiffLines({ file, limit }: { file: FileDiff; limit?: number }) {
  const [shown, setShown] = useState(limit ?? AT_ONCE);
  if (file.instead) return <p class="instead">{INSTEAD[file.instead]}</p>;
  const total = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  let left = shown;
  const language = languageOf(pathText(file.path));
  const hunks = file.hunks.map((hunk, at) => {
    const lines = hunk.lines.slice(0, Math.max(0, left));
    left -= lines.length;
    if (lines.length === 0) return null;
    return <Hunk key={at} hunk={hunk} lines={lines} language={total <= COLOURED ? language : ''} isFirst={at === 0} />;
  });
  return (
    <div class="diff" role="group" aria-label={`Changes of ${pathText(file.path)}`} tabIndex={0}>
      {hunks}
      {total > shown ? (
        <button type="button" class="more" onClick={() => setShown(shown + AT_ONCE * 2)}>
          Show {total - shown} more lines
        </button>
      ) : null}
      {file.left_out ? <p class="instead">{file.left_out} more lines are not shown: the diff is too large</p> : null}
    </div>
  );
});

function Hunk(props: { hunk: HunkLines; lines: DiffLine[]; language: string; isFirst: boolean }) {
  const { hunk, lines, language } = props;
  let [before, after] = hunk.start;
  const hasNumbers = before > 0 || after > 0;
  const parts = changedParts(lines);
  const rows = lines.map((line, at) => {
    const [old, now] = [line.kind === 'added' ? '' : before, line.kind === 'removed' ? '' : after];
    if (line.kind !== 'added') before += 1;
    if (line.kind !== 'removed') after += 1;
    const sign = line.kind === 'added' ? '+' : line.kind === 'removed' ? '−' : ' ';
    return (
      <div key={at} class={`dl ${line.kind}`}>
        <span class="no" aria-hidden="true">
          {hasNumbers ? old : ''}
        </span>
        <span class="no" aria-hidden="true">
          {hasNumbers ? now : ''}
        </span>
        <span class="sign">{sign}</span>
        <span class="tx">{coloured(line.text, language, parts.get(at))}</span>
      </div>
    );
  });
  return (
    <>
      {props.isFirst ? null : <div class="gap" aria-hidden="true">⋯</div>}
      {rows}
    </>
  );
}

/** A line in its colours, with the part of it marked that is another one. */
function coloured(text: string, language: string, part: Range | undefined) {
  const tokens = highlight(cleanLines(text), language);
  if (!part) return tokens.map(token);
  return marked(tokens, part).map(([one, isChanged], at) => (isChanged ? <mark key={at}>{token(one, 0)}</mark> : token(one, at)));
}
