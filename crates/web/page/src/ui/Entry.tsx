// One entry of the conversation.

import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { useCallDiff } from '../callDiffs';
import type { Entry, HunkLines, Part, Todo } from '../contract';
import type { EntryOf } from '../totals';
import { type CallChange, ofCall, object } from '../text/edits';
import { noteLine, refusalOf } from '../text/modelNotes';
import { clean, count, firstWords, lineCount, partName, plainOutput } from '../text/format';
import { Boundary } from './Boundary';
import { Counts, DiffLines } from './Diff';
import { Markdown } from './Markdown';
import { memo } from './memo';

/** What is open although it is folded by itself, or the other way round: it outlives being scrolled out of sight. */
const folds = new Map<string, boolean>();

const OUTPUT_LINES = 6;
const DIFF_LINES = 24;
const WRITTEN_LINES = 10;
const PROMPT_LINES = 12;
const PROMPT_LENGTH = 1_500;
/** Most of an output that is put on the page at all. */
const MAX_OUTPUT = 200_000;

export function Fold(props: { id: string; summary: ComponentChildren; isOpen?: boolean; children: ComponentChildren; class?: string }) {
  const [isOpen, setOpen] = useState(folds.get(props.id) ?? props.isOpen ?? false);
  const toggle = (event: Event) => {
    const open = (event.currentTarget as HTMLDetailsElement).open;
    folds.set(props.id, open);
    setOpen(open);
  };
  return (
    <details class={`fold ${props.class ?? ''}`} open={isOpen} onToggle={toggle}>
      <summary>{props.summary}</summary>
      {isOpen ? props.children : null}
    </details>
  );
}

/** Whether nothing of an entry is shown. */
export function isHidden(entry: Entry): boolean {
  if (entry.type === 'ended') return entry.reason.why === 'done';
  if (entry.type !== 'reply') return false;
  return stopRemark(entry) === null && entry.blocks.every((block) => block.type === 'call' || !block.text.trim());
}

/** About how high an entry is, before it was seen. */
export function guess(entry: Entry, width: number): number {
  const perLine = Math.max(24, width / 8.2);
  const text = (length: number) => Math.ceil(length / perLine) * 24;
  switch (entry.type) {
    case 'prompt':
      return 72 + Math.min((PROMPT_LINES + 1) * 24, entry.parts.reduce((sum, part) => sum + (part.type === 'text' ? text(part.text.length) : 24), 0));
    case 'reply':
      return 24 + entry.blocks.reduce((sum, block) => sum + (block.type === 'text' ? text(block.text.length) + 12 : block.type === 'reasoning' ? 30 : 0), 0);
    case 'tool_result':
      return entry.details && 'lines' in entry.details ? 140 : 48;
    case 'summary':
      return 60;
    default:
      return 40;
  }
}

/** An entry, or its text if it cannot be drawn. */
export function EntryBody(props: { entry: Entry; tool: string; args: string; range: number }) {
  return (
    <Boundary of={props.entry} plain={() => plainText(props.entry)}>
      <Drawn {...props} />
    </Boundary>
  );
}

function plainText(entry: Entry): string {
  if ('blocks' in entry) return entry.blocks.flatMap((block) => (block.type === 'call' ? [] : [block.text])).join('\n');
  if ('parts' in entry) return entry.parts.map(partName).join('\n');
  return 'text' in entry ? entry.text : JSON.stringify(entry);
}

const Drawn = memo(function Drawn({ entry, tool, args, range }: { entry: Entry; tool: string; args: string; range: number }) {
  switch (entry.type) {
    case 'prompt':
      return <PromptText parts={entry.parts} id={entry.id} />;
    case 'reply':
      return <ReplyBody entry={entry} />;
    case 'tool_result':
      return <ToolResult entry={entry} tool={tool} args={args} />;
    case 'note':
      return (
        <Fold id={entry.id} class="dim" summary={clean(noteLine(entry.about, entry.text))}>
          <p class="told">The model is told:</p>
          <pre class="out wrap">{entry.text.trim()}</pre>
        </Fold>
      );
    case 'instructions':
      return (
        <Fold
          id={entry.id}
          class="dim"
          summary={
            <>
              {entry.source === 'retake' ? 'Retake’s instructions' : clean(entry.source)}, {count(lineCount(entry.text), 'line', 'lines')}
            </>
          }
        >
          <pre class="out wrap">{entry.text}</pre>
        </Fold>
      );
    case 'summary': {
      const what = range > 0 ? `summary of ${count(range, 'entry', 'entries')}` : 'summary';
      const why =
        entry.by?.why === 'compaction'
          ? 'the conversation became too long, so the model sees this instead'
          : entry.by?.why === 'model'
            ? 'the model went back and kept this'
            : 'the model sees this instead';
      return (
        <Fold id={entry.id} class="summary" summary={`${what}: ${why}`}>
          <Markdown text={entry.text} />
        </Fold>
      );
    }
    case 'cleared':
      return <p class="cleared">The model does not see anything above</p>;
    case 'approved':
      return (
        <p class="dim">
          Allowed from now on: <code>{entry.prefix ? `${entry.tool}: ${entry.prefix}` : entry.tool}</code>
        </p>
      );
    case 'ended':
      return <Ended entry={entry} />;
  }
});

function Ended({ entry }: { entry: EntryOf<'ended'> }) {
  switch (entry.reason.why) {
    case 'done':
      return null;
    case 'interrupted':
      return <p class="dim">■ Stopped</p>;
    case 'failed':
      return <p class="bad">✗ Failed: {entry.reason.message}</p>;
    case 'round_limit':
      return <p class="warning">Stopped after too many rounds; say “go on” to continue</p>;
  }
}

/** What the user said: text, with a name for each block in it. */
export function PromptText({ parts, id }: { parts: Part[]; id: string }) {
  const [isOpen, setOpen] = useState(folds.get(`${id}:all`) ?? false);
  // Blocks follow below, each under its name.
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ');
  const lines = text.split('\n');
  const start = lines.slice(0, PROMPT_LINES).join('\n').slice(0, PROMPT_LENGTH);
  // A line or two are not worth a button.
  const isLong = lines.length > PROMPT_LINES + 2 || text.length > PROMPT_LENGTH + 200;
  const open = () => {
    folds.set(`${id}:all`, true);
    setOpen(true);
  };
  return (
    <>
      <div class="said">{isLong && !isOpen ? `${start.trimEnd()} …` : text}</div>
      {isLong && !isOpen ? (
        <button type="button" class="more" onClick={open}>
          Show all{lines.length > PROMPT_LINES + 2 ? ` ${lines.length} lines` : ''}
        </button>
      ) : null}
      {parts.map((part, at) =>
        part.type === 'paste' || part.type === 'file' ? (
          <Fold key={at} id={`${id}:${at}`} summary={partName(part)}>
            <pre class="out">{part.text.slice(0, MAX_OUTPUT)}</pre>
          </Fold>
        ) : part.type === 'image' ? (
          <Picture key={at} part={part} />
        ) : null,
      )}
    </>
  );
}

/** An image of a prompt, drawn: the page loads nothing but its own files, not even from itself. */
export function Picture({ part }: { part: Extract<Part, { type: 'image' }> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let isGone = false;
    const draw = async () => {
      const bytes = Uint8Array.from(atob(part.data), (c) => c.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes], { type: part.media_type }));
      const at = canvas.current;
      if (isGone || !at) return;
      const scale = Math.min(1, 320 / bitmap.width, 160 / bitmap.height);
      at.width = Math.max(1, Math.round(bitmap.width * scale));
      at.height = Math.max(1, Math.round(bitmap.height * scale));
      at.getContext('2d')?.drawImage(bitmap, 0, 0, at.width, at.height);
      bitmap.close();
    };
    draw().catch(() => setFailed(true));
    return () => {
      isGone = true;
    };
  }, [part]);
  return failed ? null : <canvas ref={canvas} class="picture" role="img" aria-label="Image of the prompt" />;
}

function stopRemark(entry: EntryOf<'reply'>): string | null {
  if (entry.stop === 'length') return 'the answer was cut off: it was too long';
  return entry.stop === 'refused' ? 'the model refused to answer' : null;
}

function ReplyBody({ entry }: { entry: EntryOf<'reply'> }) {
  const remark = stopRemark(entry);
  return (
    <>
      {entry.blocks.map((block, at) => {
        if (block.type === 'call' || !block.text.trim()) return null;
        if (block.type === 'reasoning') return <Thought key={at} id={`${entry.id}:${at}`} text={block.text} />;
        return <Markdown key={at} text={block.text} />;
      })}
      {remark ? <p class="warning">! {remark}</p> : null}
    </>
  );
}

/** What the model thought, in one line while it is folded. */
export function Thought({ id, text }: { id: string; text: string }) {
  return (
    <Fold id={id} class="thought" summary={<span class="cut">thought: {firstWords(text)}</span>}>
      <Markdown text={text} />
    </Fold>
  );
}

const MARKS = { done: ['●', 'done'], failed: ['✗', 'failed'], denied: ['!', 'not allowed'], interrupted: ['○', 'stopped'] } as const;
const LOOKS = new Set(['read_file', 'grep', 'glob', 'list_dir']);

/** What the tool itself says about its output: the last line, if it is in brackets. */
function remarkOf(text: string): [string, string | null] {
  const start = text.lastIndexOf('\n') + 1;
  const found = /^\[(.*)\]$/.exec(text.slice(start))?.[1];
  return found === undefined ? [text, null] : [text.slice(0, start).trimEnd(), found.replace(/\.$/, '')];
}

function ToolResult({ entry, tool, args }: { entry: EntryOf<'tool_result'>; tool: string; args: string }) {
  const text = entry.parts.map((part) => (part.type === 'text' ? part.text.trimEnd() : partName(part))).join('\n');
  const [output, remark] = remarkOf(text);
  const [sign, word] = MARKS[entry.outcome];
  const isDone = entry.outcome === 'done';
  const change = useMemo(() => (isDone ? ofCall(tool, args, entry.details) : null), [entry, tool, args]);
  const head = (suffix: ComponentChildren) => (
    <span class="call">
      <span class={`mark m-${entry.outcome}`} role="img" aria-label={word}>
        {sign}
      </span>
      <span class="title">{clean(entry.title)}</span>
      {suffix}
    </span>
  );
  const said = isDone ? null : <span class={`outcome m-${entry.outcome}`}>{remark && remark.length <= 60 ? `${word}: ${remark}` : word}</span>;
  if (isDone && entry.todos) {
    return (
      <>
        {head(null)}
        <Todos todos={entry.todos} />
      </>
    );
  }
  if (change) return <Edited entry={entry} tool={tool} change={change} head={head} />;
  if (isDone && (tool === 'move_file' || tool === 'delete_file')) return head(null);
  if (isDone && LOOKS.has(tool)) {
    const about = remark && remark.length <= 60 ? remark : count(lineCount(output), 'line', 'lines');
    return (
      <Fold id={entry.id} summary={head(<span class="dim">{about}</span>)}>
        <pre class="out" tabIndex={0}>{plainOutput(text).slice(0, MAX_OUTPUT)}</pre>
      </Fold>
    );
  }
  if (entry.details && 'rewound' in entry.details) {
    return (
      <>
        {head(said)}
        <Markdown text={entry.details.report} />
      </>
    );
  }
  const refusal = refusalOf(entry.outcome, text);
  if (refusal) {
    return (
      <Fold id={entry.id} class="refused" summary={head(<span class={`outcome m-${entry.outcome}`}>{refusal}</span>)}>
        <p class="told dim">The model is told:</p>
        <pre class="out wrap">{text}</pre>
      </Fold>
    );
  }
  const command = tool === 'bash' ? object(args)?.['command'] : undefined;
  // What the title tells whole is not told twice.
  const isLongCommand = typeof command === 'string' && !entry.title.includes(command.trim());
  return (
    <>
      {head(said)}
      {isLongCommand ? <pre class="out command" tabIndex={0}>{command.trim()}</pre> : null}
      <Output id={entry.id} text={tool === 'bash' ? output : text} keep={tool === 'bash' ? 'last' : 'first'} isProse={tool !== 'bash' && !isDone} />
    </>
  );
}

/** A file that was edited or written: what changed in it, where the session knows that; else what the model wrote. */
function Edited(props: { entry: EntryOf<'tool_result'>; tool: string; change: CallChange; head: (suffix: ComponentChildren) => ComponentChildren }) {
  const { entry, tool, change, head } = props;
  const known = useCallDiff(entry, change);
  if (known) {
    const isNew = known.removed === 0 && tool === 'write_file';
    return (
      <Fold key="known" id={entry.id} isOpen summary={head(<Counts added={known.added} removed={known.removed} />)}>
        <DiffLines file={known} limit={isNew ? WRITTEN_LINES : DIFF_LINES} />
      </Fold>
    );
  }
  const isWhole = tool === 'write_file';
  const suffix = isWhole ? `writes ${count(change.diff.added, 'line', 'lines')}` : change.isEverywhere ? 'excerpt, replaced everywhere' : 'excerpt';
  // What a file was before it was written is not known here, so nothing is marked as new.
  const plain = (hunk: HunkLines) => ({ ...hunk, lines: hunk.lines.map(({ text }) => ({ kind: 'same' as const, text })) });
  const shown = isWhole ? { ...change.diff, hunks: change.diff.hunks.map(plain) } : change.diff;
  return (
    <Fold key="written" id={entry.id} isOpen={!isWhole} summary={head(<span class="dim">{suffix}</span>)}>
      <DiffLines file={shown} limit={isWhole ? WRITTEN_LINES : DIFF_LINES} />
    </Fold>
  );
}

/** Output, of which a few lines are shown while it is folded. */
export function Output({ id, text, keep, isProse = false }: { id: string; text: string; keep: 'first' | 'last'; isProse?: boolean }) {
  const key = `${id}:out`;
  const [isOpen, setOpen] = useState(folds.get(key) ?? false);
  const whole = plainOutput(text).trimEnd();
  if (!whole) return null;
  const lines = whole.split('\n');
  const isLong = lines.length > OUTPUT_LINES + 1;
  const few = keep === 'last' ? lines.slice(-OUTPUT_LINES) : lines.slice(0, OUTPUT_LINES);
  const toggle = () => {
    folds.set(key, !isOpen);
    setOpen(!isOpen);
  };
  const shown = isLong && !isOpen ? few.join('\n') : whole.length > MAX_OUTPUT ? `… ${whole.slice(-MAX_OUTPUT)}` : whole;
  return (
    <>
      {isLong ? (
        <button type="button" class="more" aria-expanded={isOpen} onClick={toggle}>
          {isOpen ? 'Show less' : `Show ${lines.length - OUTPUT_LINES} more lines`}
        </button>
      ) : null}
      <pre class={isProse ? 'out wrap' : 'out'} tabIndex={0}>{shown}</pre>
    </>
  );
}

const TODO = { done: ['☑', 'done'], active: ['▸', 'under way'], pending: ['☐', 'open'] } as const;
export function Todos({ todos }: { todos: Todo[] }) {
  return (
    <ul class="todos">
      {todos.map((todo, at) => (
        <li key={at} class={`todo-${todo.state}`}>
          <span role="img" aria-label={TODO[todo.state][1]}>
            {TODO[todo.state][0]}
          </span>
          {todo.text}
        </li>
      ))}
    </ul>
  );
}
