// The composer: what the user is about to say. Several lines, pasted blocks, images, files by name, history.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { interrupt, prompt, withdraw } from '../actions';
import type { Part } from '../contract';
import { Blocks, isBlock, typing } from '../composerText';
import { typedSoon } from '../drafts';
import { say } from '../notices';
import { send } from '../commands';
import { matching, read } from '../slash';
import { held, isUnderWay, panel, setComposer, transcript, useView } from '../store';
import { partName, pathText, size } from '../text/format';

interface Choice {
  text: string;
  /** What is drawn instead. */
  shown?: string;
  /** What can follow it. */
  takes: string;
  about: string;
}
const MAX_ROWS = 8;
const MAX_HISTORY = 200;
const MAX_IMAGE = 5 << 20;
const MAX_TEXT = 256 << 10;
/** Within this many milliseconds after the composer was filled, Enter was meant for something else. */
const STILL_MS = 400;
/** Within this many milliseconds a second key belongs to the first. */
const TWICE_MS = 1_500;

export function Composer() {
  const view = useView();
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const blocks = useRef(new Blocks());
  const history = useRef<Part[][]>([]);
  const recalled = useRef<{ at: number; before: { text: string; blocks: Blocks } } | null>(null);
  const filled = useRef(0);
  const typed = useRef(0);
  const escaped = useRef(0);
  const dismissed = useRef('');
  const [choices, setChoices] = useState<{ list: Choice[]; at: number; from: number } | null>(null);
  const [isOver, setOver] = useState(false);

  const text = () => area.current?.value ?? '';
  const changed = () => {
    if (!area.current) return;
    fit(area.current);
    typedSoon();
  };
  const put = (value: string) => {
    if (area.current) area.current.value = value;
    changed();
  };
  const insert = (piece: string) => {
    const box = area.current;
    if (!box) return;
    box.setRangeText(piece, box.selectionStart, box.selectionEnd, 'end');
    changed();
  };

  // Before anything else is done: what was typed is put here.
  useLayoutEffect(() => {
    setComposer({
      // While one looks through what was said before, what is typed is what was there.
      parts: () => (recalled.current ? recalled.current.before.blocks.parts(recalled.current.before.text) : blocks.current.parts(text())),
      isBlank: () => text() === '',
      typedAt: () => typed.current,
      set: (parts) => {
        put(blocks.current.text(parts));
        if (parts.length > 0) filled.current = Date.now();
        recalled.current = null;
        setChoices(null);
      },
      insert,
      focus: () => area.current?.focus(),
      remember: (parts) => {
        const last = history.current.at(-1);
        if (JSON.stringify(last) !== JSON.stringify(parts)) history.current.push(parts);
        if (history.current.length > MAX_HISTORY) history.current.shift();
      },
    });
    return () => setComposer(null);
  }, []);
  useEffect(() => {
    const box = area.current;
    if (!box) return undefined;
    // A line may be two where there is less room.
    let width = 0;
    const look = new ResizeObserver(() => {
      if (box.clientWidth === width) return;
      width = box.clientWidth;
      fit(box);
    });
    const again = () => fit(box);
    look.observe(box);
    addEventListener('resize', again);
    return () => {
      look.disconnect();
      removeEventListener('resize', again);
    };
  }, []);

  const complete = async () => {
    const box = area.current;
    if (!box) return;
    const found = typing(box.value, box.selectionStart);
    if (!found || `${found.kind}${found.query}` === dismissed.current) return setChoices(null);
    dismissed.current = '';
    if (found.kind === 'command') {
      const list = matching(found.query).map((one) => ({ text: `/${one.name}`, takes: one.takes, about: one.about }));
      return setChoices(list.length > 0 ? { list, at: 0, from: found.from } : null);
    }
    const answer = await send({ type: 'files', query: found.query });
    const still = typing(box.value, box.selectionStart);
    if (answer.ok?.type !== 'files' || still?.kind !== 'file' || still.query !== found.query) return;
    const list = answer.ok.paths.map((path) => ({ text: `@${/\s/.test(path) ? `"${path}"` : path} `, shown: `@${pathText(path)}`, takes: '', about: '' }));
    setChoices(list.length > 0 ? { list, at: 0, from: found.from } : null);
  };

  const choose = (choice: Choice, from: number) => {
    const box = area.current;
    if (!box) return;
    box.setRangeText(choice.text, from, box.selectionStart, 'end');
    setChoices(null);
    dismissed.current = choice.text.startsWith('/') ? `command${choice.text.slice(1)}` : '';
    changed();
    box.focus();
  };

  const submit = () => {
    if (Date.now() - filled.current < STILL_MS) return;
    const line = text();
    const meant = read(line);
    if (meant && 'unknown' in meant) return say('warning', `There is no command /${meant.unknown}; /help lists them`);
    if (meant && 'tooMuch' in meant) return say('warning', `/${meant.tooMuch} takes nothing behind it. To send this as a prompt, begin it with a space`);
    if (meant) {
      put('');
      setChoices(null);
      return void meant.told.run(meant.argument);
    }
    const parts = blocks.current.parts(line);
    if (parts.length === 0) return;
    if (!view) return say('warning', 'The session is not open yet');
    put('');
    setChoices(null);
    takeUp();
    transcript()?.toEnd();
    void prompt(parts);
  };

  const recall = (by: number): boolean => {
    const all = history.current;
    const at = (recalled.current?.at ?? all.length) + by;
    if (at < 0 || (by > 0 && !recalled.current)) return false;
    const before = recalled.current?.before ?? { text: text(), blocks: blocks.current };
    const parts = all[at];
    if (parts) {
      recalled.current = { at, before };
      blocks.current = new Blocks();
      put(blocks.current.text(parts));
    } else {
      recalled.current = null;
      blocks.current = before.blocks;
      put(before.text);
    }
    const box = area.current;
    box?.setSelectionRange(box.value.length, box.value.length);
    return true;
  };

  /** What was typed before something older was taken up is among what was said before. */
  const takeUp = () => {
    const before = recalled.current?.before;
    recalled.current = null;
    const parts = before?.blocks.parts(before.text) ?? [];
    if (parts.length > 0) history.current.push(parts);
  };

  const escape = () => {
    if (isUnderWay(view)) return void interrupt();
    if (text() === '' && Date.now() - escaped.current < TWICE_MS) {
      escaped.current = 0;
      panel.value = { kind: 'timeline' };
      return undefined;
    }
    escaped.current = Date.now();
    return undefined;
  };

  const key = (event: KeyboardEvent) => {
    const box = area.current;
    if (!box || event.isComposing) return;
    if (choices && chooseKey(event, choices, setChoices, choose, () => (dismissed.current = dismissedOf(box)))) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const isPlain = !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey;
    const { value, selectionStart: at, selectionEnd } = box;
    if (event.key === 'Enter' && (isPlain || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (event.repeat) return;
      if (isPlain && value[at - 1] === '\\' && at === selectionEnd) {
        box.setRangeText('\n', at - 1, at, 'end');
        changed();
      } else submit();
    } else if (event.key === 'Enter' && event.altKey) {
      event.preventDefault();
      insert('\n');
    } else if (event.key === 'ArrowUp' && isPlain && !value.slice(0, at).includes('\n')) {
      if (recall(-1)) event.preventDefault();
    } else if (event.key === 'ArrowDown' && isPlain && !value.slice(at).includes('\n')) {
      if (recall(1)) event.preventDefault();
    } else if (event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      escape();
    } else if (event.key === 'Backspace' && at === selectionEnd) {
      const mark = blocks.current.markBefore(value, at);
      if (mark < 0) return;
      event.preventDefault();
      box.setRangeText('', mark, at, 'end');
      changed();
    }
  };

  const attach = async (files: Iterable<File>) => {
    for (const file of files) {
      const isImage = /^image\/(png|jpeg|gif|webp)$/.test(file.type);
      const written = isImage || file.size > MAX_TEXT ? null : await textOf(file);
      if (written !== null) {
        insert(blocks.current.add({ type: 'paste', text: written }));
      } else if (!isImage) {
        say('warning', `${file.name} is neither an image that a model can see nor a short text; mention files of the workspace with @`);
      } else if (file.size > MAX_IMAGE) {
        say('warning', `${file.name} is ${size(file.size)}: larger than ${size(MAX_IMAGE)}`);
      } else {
        insert(blocks.current.add({ type: 'image', media_type: file.type, data: await base64(file) }));
      }
    }
    area.current?.focus();
  };

  const paste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])];
    const pasted = event.clipboardData?.getData('text/plain') ?? '';
    if (files.length > 0 && !pasted) {
      event.preventDefault();
      void attach(files);
    } else if (isBlock(pasted)) {
      event.preventDefault();
      insert(blocks.current.add({ type: 'paste', text: pasted.replace(/\r\n?/g, '\n') }));
    }
  };

  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void attach([...(event.dataTransfer?.files ?? [])]);
  };

  const isRunning = isUnderWay(view);
  return (
    <form
      class={`composer ${isOver ? 'over' : ''}`}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      {choices ? <Choices choices={choices} choose={choose} /> : null}
      <HeldList />
      <div class="line">
        <textarea
          ref={area}
          id="composer"
          rows={1}
          aria-label="Prompt"
          dir="auto"
          aria-autocomplete="list"
          aria-controls={choices ? 'choices' : undefined}
          aria-activedescendant={choices ? `choice-${choices.at}` : undefined}
          placeholder={isRunning ? 'Queue a prompt' : 'Say what is to be done'}
          autocomplete="off"
          spellcheck={false}
          onInput={() => {
            // Whoever types means what they press next.
            filled.current = 0;
            typed.current = Date.now();
            takeUp();
            changed();
            void complete();
          }}
          onKeyDown={key}
          onPaste={paste}
          onBlur={() => setTimeout(() => setChoices(null), 150)}
        />
        <button type="button" class="quiet attach" aria-label="Attach images or texts" title="Attach images or texts" onClick={() => picker.current?.click()}>
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <path d="M13.5 7.5 8 13a3.2 3.2 0 0 1-4.6-4.5l5.8-5.8a2.1 2.1 0 0 1 3 3L6.6 11.3a1 1 0 0 1-1.5-1.5L10 4.9" />
          </svg>
        </button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files to attach"
          onChange={(event) => {
            const files = [...(event.currentTarget.files ?? [])];
            event.currentTarget.value = '';
            void attach(files);
          }}
        />
        {isRunning ? (
          <button type="button" class="stop" onClick={() => void interrupt()}>
            Stop
          </button>
        ) : null}
        <button type="submit" class="primary" title={isRunning ? 'Sent when this turn has ended' : undefined}>
          {isRunning ? 'Queue' : 'Send'}
        </button>
      </div>
    </form>
  );
}

/** As high as what is in it, up to a part of the window. */
function fit(box: HTMLTextAreaElement): void {
  box.style.height = 'auto';
  const frame = box.offsetHeight - box.clientHeight;
  box.style.height = `${Math.min(box.scrollHeight + frame, Math.round(innerHeight * 0.4))}px`;
}

/** What this tab has said while a turn runs, to be taken back. */
function HeldList() {
  if (held.value.length === 0) return null;
  return (
    <ul class="held" aria-label="Queued prompts">
      {held.value.map(({ request, parts }) => (
        <li key={request}>
          <span class="dim">queued:</span> <span class="cut">{parts.map(partName).join(' ')}</span>
          <button type="button" class="quiet" onClick={() => void withdraw(request, parts)}>
            Edit
          </button>
        </li>
      ))}
    </ul>
  );
}

function dismissedOf(box: HTMLTextAreaElement): string {
  const found = typing(box.value, box.selectionStart);
  return found ? `${found.kind}${found.query}` : '';
}

type Offered = { list: Choice[]; at: number; from: number };

/** A key while something is offered. Returns whether it was about that. */
function chooseKey(
  event: KeyboardEvent,
  offered: Offered,
  set: (next: Offered | null) => void,
  choose: (choice: Choice, from: number) => void,
  dismiss: () => void,
): boolean {
  const count = offered.list.length;
  const chosen = offered.list[offered.at];
  switch (event.key) {
    case 'ArrowDown':
      set({ ...offered, at: (offered.at + 1) % count });
      return true;
    case 'ArrowUp':
      set({ ...offered, at: (offered.at + count - 1) % count });
      return true;
    case 'Tab':
      if (chosen) choose(chosen, offered.from);
      return true;
    case 'Enter': {
      if (event.shiftKey || !chosen) return false;
      const typed = (event.currentTarget as HTMLTextAreaElement).value;
      // A command that is typed out is meant.
      if (typed === chosen.text) return false;
      choose(chosen, offered.from);
      return true;
    }
    case 'Escape':
      dismiss();
      set(null);
      return true;
    default:
      return false;
  }
}

function Choices({ choices, choose }: { choices: Offered; choose: (choice: Choice, from: number) => void }) {
  const from = Math.max(0, Math.min(choices.at - MAX_ROWS + 2, choices.list.length - MAX_ROWS));
  const hidden = choices.list.length - MAX_ROWS;
  return (
    <ul class="choices" id="choices" role="listbox" aria-label="Completions">
      {choices.list.slice(from, from + MAX_ROWS).map((choice, offset) => {
        const at = from + offset;
        return (
          <li
            key={choice.text}
            id={`choice-${at}`}
            role="option"
            aria-selected={at === choices.at}
            onMouseDown={(event) => {
              event.preventDefault();
              choose(choice, choices.from);
            }}
          >
            <span class="name">
              {choice.shown ?? choice.text}
              {choice.takes ? <span class="dim"> {choice.takes}</span> : null}
            </span>
            <span class="dim about">{choice.about}</span>
          </li>
        );
      })}
      {hidden > 0 ? (
        <li class="dim rest" role="presentation">
          … {hidden} more
        </li>
      ) : null}
    </ul>
  );
}

/** What is in a file, if that is text. */
async function textOf(file: File): Promise<string | null> {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
    return text.includes('\0') || !text.trim() ? null : text.replace(/\r\n?/g, '\n');
  } catch {
    return null;
  }
}

async function base64(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
