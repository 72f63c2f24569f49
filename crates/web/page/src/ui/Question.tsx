// Whether a call may run: what is asked, and the keys that answer it.
//
// Whoever is typing when it is asked goes on typing: the focus stays in the composer, what is pressed at once was not meant for the
// question, and the composer of somebody who has begun to say something answers nothing any more. Otherwise the keys are those of the
// terminal, and no letter is lost.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { quietly } from '../actions';
import type { Answer, FileDiff, Question as Asked } from '../contract';
import { announced, composer, useView } from '../store';
import { clean, cleanLines, count, pathText, ruleText } from '../text/words';
import { Boundary } from './Boundary';
import { FileBox } from './Diff';
import { focusOnce } from './focus';

/** For so many milliseconds nobody can have read a question. */
const UNSEEN_MS = 300;
/** So much of a title is read out at once. */
const SPOKEN = 200;

export function Questions() {
  const view = useView();
  // It is settled when the session says so; until then a second key must not answer the next question.
  const [answered, setAnswered] = useState<string | null>(null);
  const question = view?.questions[0];
  if (!question) return null;
  const answer = async (one: Answer) => {
    setAnswered(question.call);
    const isTaken = await quietly({ type: 'answer', call: question.call, answer: one });
    if (!isTaken) setAnswered(null);
  };
  const more = (view?.questions.length ?? 1) - 1;
  return <Card key={question.call} question={question} isAnswered={answered === question.call} more={more} answer={answer} />;
}

function Card(props: { question: Asked; isAnswered: boolean; more: number; answer: (one: Answer) => void }) {
  const { question } = props;
  const box = useRef<HTMLElement>(null);
  const [isWhy, setWhy] = useState(false);
  const [why, setText] = useState('');
  /** Whether it has been there long enough to be answered. */
  const [isSeen, setSeen] = useState(false);
  /** The letters that have only chosen, and are said after all if others follow; empty if nothing is chosen. */
  const [chosen, setChosen] = useState('');
  /** Whether the composer is used for something else. */
  const [isAside, setAside] = useState(false);
  const { rule } = question;
  const isOpen = isSeen && !props.isAnswered;
  const answer = (one: Answer) => isOpen && props.answer(one);
  const allow = () => answer({ type: 'allow' });
  const always = () => rule && answer({ type: 'allow_always', rule });
  const deny = () => answer({ type: 'deny', why: why.trim() || null });

  useEffect(() => {
    announced.value = `May it run? ${clean(question.title).slice(0, SPOKEN)}. y is yes, n is no; Shift and Tab go to all answers`;
    if (document.activeElement === document.body || document.activeElement === null) box.current?.focus();
    if (!(composer()?.isBlank() ?? true)) setAside(true);
    const timer = setTimeout(() => setSeen(true), UNSEEN_MS);
    return () => {
      clearTimeout(timer);
      if (document.activeElement === document.body || document.activeElement === null) composer()?.focus();
    };
  }, []);

  const key = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    const isComposer = target.id === 'composer';
    const isInside = box.current?.contains(target) ?? false;
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || props.isAnswered) return;
    if (isComposer ? isAside || !(composer()?.isBlank() ?? true) : !isInside || target instanceof HTMLInputElement) {
      if (isComposer && !isAside) setAside(true);
      return;
    }
    const isLetter = event.key.length === 1 && event.key !== ' ';
    if (!isSeen || event.repeat) {
      // The composer takes what is typed; elsewhere it was not meant for anything.
      if (isComposer && isLetter) setAside(true);
      else if (isInside && (isLetter || event.key === 'Enter')) event.preventDefault();
      return;
    }
    const take = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    if (event.key === 'Enter' && chosen) {
      take();
      always();
    } else if (event.key === 'Backspace' && chosen) {
      take();
      setChosen('');
    } else if (event.key === 'a' && rule) {
      // It lasts, and is too easily the first letter of something else.
      take();
      setChosen(`${chosen}a`);
    } else if (!chosen && (event.key === 'y' || event.key === 'n' || event.key === 'w')) {
      take();
      if (event.key === 'y') allow();
      else if (event.key === 'n') deny();
      else setWhy(true);
    } else if (isLetter || (chosen && event.key === ' ')) {
      // Somebody begins to say something: it goes where the focus is then, behind what had only chosen.
      setAside(true);
      setChosen('');
      if (chosen) composer()?.insert(chosen);
      composer()?.focus();
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
        <div class="answers">
          <button type="button" class="primary" disabled={!isOpen} onClick={allow}>
            <kbd>y</kbd> Yes, this once
          </button>
          {rule ? (
            <button type="button" class={chosen ? 'chosen' : ''} disabled={!isOpen} onClick={always}>
              <kbd>a</kbd> Yes, and always <code>{clean(ruleText(rule))}</code> in this session {chosen ? <kbd>Enter</kbd> : null}
            </button>
          ) : null}
          <button type="button" disabled={!isOpen} onClick={deny}>
            <kbd>n</kbd> No
          </button>
          <button type="button" disabled={!isOpen} onClick={() => setWhy(true)}>
            <kbd>w</kbd> No, and say why
          </button>
          {isAside ? (
            <span class="dim">
              You are typing: <kbd>Shift</kbd> <kbd>Tab</kbd> comes here
            </span>
          ) : null}
          <span class="sr" role="status">
            {chosen ? 'Always is chosen: Enter confirms it' : ''}
          </span>
        </div>
      )}
    </section>
  );
}

/** What would run or be written, with how much of it is out of sight. */
function Shown({ question }: { question: Asked }) {
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
