// Whether a call may run: what is asked, and the keys that answer it.

import { useEffect, useRef, useState } from 'preact/hooks';

import { quietly } from '../actions';
import type { Answer, Question as Asked } from '../contract';
import { composer, useView } from '../store';
import { ruleText } from '../text/words';
import { FileBox } from './Diff';
import { focusOnce } from './focus';

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
  const { question, isAnswered } = props;
  const box = useRef<HTMLElement>(null);
  const [isWhy, setWhy] = useState(false);
  const [why, setText] = useState('');
  useEffect(() => {
    // Somebody who is typing goes on typing.
    if (composer()?.isBlank() ?? true) box.current?.focus();
    return () => {
      if (document.activeElement === document.body || document.activeElement === null) composer()?.focus();
    };
  }, []);
  const rule = question.rule;
  const allow = () => props.answer({ type: 'allow' });
  const always = () => rule && props.answer({ type: 'allow_always', rule });
  const deny = () => props.answer({ type: 'deny', why: why.trim() || null });
  const key = (event: KeyboardEvent) => {
    if (isAnswered || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLTextAreaElement) return;
    if (event.target instanceof HTMLInputElement) return;
    const act = { y: allow, a: always, n: deny, w: () => setWhy(true) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  return (
    <section class="question" ref={box} tabIndex={-1} onKeyDown={key} role="alertdialog" aria-label="May it run?" aria-describedby="asked">
      <header>
        <strong id="asked">{question.detail ? question.tool : question.title}</strong>
        <span class="dim">
          {question.why}
          {props.more > 0 ? ` · ${props.more} more after this` : ''}
        </span>
      </header>
      <div class="shown">
        {question.detail ? (
          <pre class="out command" tabIndex={0}>
            {question.detail}
          </pre>
        ) : null}
        {(question.diffs ?? []).map((file, at) => (
          <FileBox key={at} file={file} />
        ))}
      </div>
      {question.detail && !rule ? (
        <p class="dim">There is no “always” for it: that is for one simple command, not for several at once or what only the shell understands.</p>
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
          <button type="submit" disabled={isAnswered}>
            No
          </button>
        </form>
      ) : (
        <div class="answers">
          <button type="button" class="primary" disabled={isAnswered} onClick={allow}>
            <kbd>y</kbd> Yes, this once
          </button>
          {rule ? (
            <button type="button" disabled={isAnswered} onClick={always}>
              <kbd>a</kbd> Yes, and always <code>{ruleText(rule)}</code> in this session
            </button>
          ) : null}
          <button type="button" disabled={isAnswered} onClick={deny}>
            <kbd>n</kbd> No
          </button>
          <button type="button" disabled={isAnswered} onClick={() => setWhy(true)}>
            <kbd>w</kbd> No, and say why
          </button>
        </div>
      )}
    </section>
  );
}
