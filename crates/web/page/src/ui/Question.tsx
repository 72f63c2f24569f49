// Whether a call may run: what is asked, and the keys that answer it.
//
// In a text field every letter is text. Elsewhere a letter goes to an answer, Enter gives it, and whatever else is typed becomes text in the
// composer, with the letter that had only gone to an answer: no sentence answers, and no letter is lost. The card takes the focus from a
// composer only if that is empty and nobody has just typed there.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { PermissionAnswer, FileDiff, Question as ToolQuestion } from '../contract';
import { focusOnce, isText } from '../focus';
import { quietly } from '../commands';
import { announced, applying, composer, panel, sidebarOpen, useView } from '../store';
import { clean, cleanLines, count, pathText, ruleText } from '../text/format';
import { Boundary } from './Boundary';
import { FileBox } from './Diff';

/** For so many milliseconds nobody can have read a question. */
const UNSEEN_MS = 300;
/** Whoever typed within so many milliseconds is typing, although the composer is empty. */
const TYPING_MS = 2_000;
/** So much of a title is read out at once. */
const SPOKEN = 200;

export function Questions() {
  const view = useView();
  // It is settled when the session says so; until then a second key must not answer the next question.
  const [answered, setAnswered] = useState<string | null>(null);
  const question = view?.questions[0];
  if (!question) return null;
  const answer = async (one: PermissionAnswer) => {
    setAnswered(question.call);
    const isTaken = await quietly({ type: 'answer', call: question.call, answer: one });
    if (!isTaken) setAnswered(null);
  };
  const more = (view?.questions.length ?? 1) - 1;
  return <Card key={question.call} question={question} isAnswered={answered === question.call} more={more} answer={answer} />;
}

function Card(props: { question: ToolQuestion; isAnswered: boolean; more: number; answer: (one: PermissionAnswer) => void }) {
  const { question } = props;
  const box = useRef<HTMLElement>(null);
  const [isWhy, setWhy] = useState(false);
  const [why, setText] = useState('');
  /** Whether it has been there long enough to be answered. */
  const [isSeen, setSeen] = useState(false);
  /** The letter that has gone to an answer, and is said after all if others follow. */
  const chosen = useRef('');
  const where = useFocus(box);
  const { rule } = question;
  const isOpen = isSeen && !props.isAnswered;
  const answer = (one: PermissionAnswer) => {
    if (!isOpen) return;
    chosen.current = '';
    // A button that can no longer be pressed loses the focus to nobody.
    if (box.current?.contains(document.activeElement)) box.current.focus();
    props.answer(one);
  };
  const allow = () => answer({ type: 'allow' });
  const always = () => rule && answer({ type: 'allow_always', rule });
  const deny = () => answer({ type: 'deny', why: why.trim() || null });

  useEffect(() => {
    announced.value = `May it run? ${clean(question.title).slice(0, SPOKEN)}. y goes to yes, n to no, Enter answers; from the composer Shift and Tab go to the answers`;
    if (isFree()) box.current?.focus();
    const timer = setTimeout(() => setSeen(true), UNSEEN_MS);
    return () => {
      clearTimeout(timer);
      if (document.activeElement === document.body || document.activeElement === null) composer()?.focus();
    };
  }, []);

  const key = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    const place = placeOf(target, box.current);
    if (event.isComposing || event.altKey || (place !== 'card' && place !== 'page')) return;
    if (event.ctrlKey || event.metaKey) {
      // What is pasted is text, too.
      if (place === 'card' && event.key === 'v') composer()?.focus();
      return;
    }
    const take = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    const button = box.current?.querySelector<HTMLButtonElement>(`[data-answer="${CSS.escape(event.key)}"]:enabled`);
    if (button && !chosen.current && !event.repeat) {
      take();
      chosen.current = event.key;
      button.focus();
    } else if (place === 'page') {
      return;
    } else if (event.repeat || (event.key === 'Enter' && !isOpen)) {
      // Held down, or pressed before it could be read: it was meant for something else.
      if (event.key.length === 1 || event.key === 'Enter') take();
    } else if (isTyped(event.key, chosen.current)) {
      // Somebody begins to say something: it goes where the focus is then.
      if (chosen.current) composer()?.insert(chosen.current);
      chosen.current = '';
      composer()?.focus();
    } else if (event.key === 'Backspace' || event.key === 'Tab') {
      if (event.key === 'Backspace') box.current?.focus();
      chosen.current = '';
    }
  };
  const latest = useRef(key);
  latest.current = key;
  useEffect(() => {
    const listen = (event: KeyboardEvent) => latest.current(event);
    // Before the composer hears of it.
    document.addEventListener('keydown', listen, { capture: true });
    return () => document.removeEventListener('keydown', listen, { capture: true });
  }, []);

  return (
    <section class="question" ref={box} tabIndex={-1} role="alertdialog" aria-label="May it run?" aria-describedby="asked">
      <header tabIndex={0} role="group" aria-label="What is asked">
        <strong id="asked">{clean(question.detail ? question.tool : question.title)}</strong>
        <span class="dim">
          {clean(question.why)}
          {props.more > 0 ? ` · ${props.more} more after this` : ''}
        </span>
      </header>
      <Shown question={question} />
      {question.detail && !rule ? (
        <p class="dim">“Always” is offered only for a single simple command.</p>
      ) : null}
      {isWhy ? (
        <form
          class="why"
          onSubmit={(event) => {
            event.preventDefault();
            deny();
          }}
        >
          <input
            type="text"
            aria-label="Why not"
            placeholder="Why not; the model is told"
            value={why}
            ref={focusOnce}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Escape') return;
              event.stopPropagation();
              setWhy(false);
              box.current?.focus();
            }}
          />
          <button type="submit" disabled={!isOpen}>
            No
          </button>
        </form>
      ) : (
        <div class={`answers ${where === 'card' || where === 'page' ? 'by-keys' : ''}`}>
          <button type="button" class="primary" data-answer="y" disabled={!isOpen} onClick={allow}>
            <kbd>y</kbd> Yes, this once
          </button>
          {rule ? (
            <button type="button" data-answer="a" disabled={!isOpen} onClick={always}>
              <kbd>a</kbd> Yes, and always <code>{clean(ruleText(rule))}</code> in this session
            </button>
          ) : null}
          <button type="button" data-answer="n" disabled={!isOpen} onClick={deny}>
            <kbd>n</kbd> No
          </button>
          <button type="button" data-answer="w" disabled={!isOpen} onClick={() => setWhy(true)}>
            <kbd>w</kbd> No, and say why
          </button>
          <KeysHint where={where} />
        </div>
      )}
    </section>
  );
}

type Place = 'card' | 'field' | 'page' | 'elsewhere';

/** Where keys go: to the question, to a text, to the page, or to what is open beside it. */
function placeOf(at: Element | null, card: HTMLElement | null): Place {
  if (isText(at)) return 'field';
  if (card?.contains(at)) return 'card';
  return at === null || at === document.body || at.closest('.transcript') ? 'page' : 'elsewhere';
}

function useFocus(card: { current: HTMLElement | null }): Place {
  const [place, setPlace] = useState<Place>('elsewhere');
  useEffect(() => {
    const look = (at: Element | null) => setPlace(placeOf(at, card.current));
    const came = (event: FocusEvent) => look(event.target as Element);
    const left = (event: FocusEvent) => look(event.relatedTarget as Element | null);
    look(document.activeElement);
    document.addEventListener('focusin', came);
    document.addEventListener('focusout', left);
    return () => {
      document.removeEventListener('focusin', came);
      document.removeEventListener('focusout', left);
    };
  }, []);
  return place;
}

/** Whether nobody is typing, nor has just typed. */
function isFree(): boolean {
  const [at, box] = [document.activeElement, composer()];
  if (at === null || at === document.body) return true;
  return at.id === 'composer' && box !== null && box.isBlank() && Date.now() - box.typedAt() > TYPING_MS;
}

/** Whether a key begins or continues a text. A blank presses a button, unless it comes after a letter. */
function isTyped(key: string, before: string): boolean {
  return key === 'Dead' || key === 'Process' || (key.length === 1 && (key !== ' ' || before !== ''));
}

/** What keys do now. There is always one line of it, so that nothing moves. */
function KeysHint({ where }: { where: Place }) {
  if (where === 'field') {
    return (
      <p class="keys-hint dim">
        You are typing: <kbd>Shift</kbd> <kbd>Tab</kbd> goes to the answers
      </p>
    );
  }
  return (
    <p class="keys-hint dim">
      {where === 'elsewhere' ? (
        'Keys go to what is open beside'
      ) : (
        <>
          A letter goes to an answer, <kbd>Enter</kbd> gives it
        </>
      )}
    </p>
  );
}

/** On a narrow screen, over what covers the conversation: that something is asked, and the way there. */
export function Waiting() {
  const view = useView();
  if (!view?.questions.length || (panel.value === null && !sidebarOpen.value)) return null;
  const show = () => {
    if (applying.value) return;
    panel.value = null;
    sidebarOpen.value = false;
  };
  return (
    <button type="button" class="asked" onClick={show}>
      ? The agent waits for your answer
    </button>
  );
}

/** What would run or be written, with how much of it is out of sight. */
function Shown({ question }: { question: ToolQuestion }) {
  const box = useRef<HTMLDivElement>(null);
  const [below, setBelow] = useState(0);
  const measure = () => {
    const at = box.current;
    if (!at) return;
    const height = Number.parseFloat(getComputedStyle(at).lineHeight) || 20;
    // Half a line is none.
    setBelow(Math.round((at.scrollHeight - at.scrollTop - at.clientHeight) / height));
  };
  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    for (const child of box.current?.children ?? []) observer.observe(child);
    return () => observer.disconnect();
  }, []);
  const plain = () => [question.detail ?? '', ...(question.diffs ?? []).map(inWords)].join('\n');
  return (
    <>
      <div class="shown" ref={box} onScroll={measure} tabIndex={0} role="group" aria-label="What would be done">
        <Boundary of={question} plain={plain}>
          {question.detail ? <pre class="out command">{cleanLines(question.detail)}</pre> : null}
          {(question.diffs ?? []).map((file, at) => (
            <FileBox key={at} file={file} />
          ))}
        </Boundary>
      </div>
      {below > 0 ? (
        <button type="button" class="more" onClick={() => box.current?.scrollBy({ top: box.current.clientHeight - 40 })}>
          … {count(below, 'more line', 'more lines')} below
        </button>
      ) : null}
    </>
  );
}

/** A difference that could not be drawn. */
function inWords(file: FileDiff): string {
  const sign = { same: ' ', added: '+', removed: '-' };
  const lines = (file.hunks ?? []).flatMap((hunk) => hunk.lines.map((line) => cleanLines(`${sign[line.kind]}${line.text}`)));
  return [pathText(file.path), ...lines].join('\n');
}
