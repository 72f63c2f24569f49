// The head of the page: what the session is about, undo and redo, what can be opened.

import { useEffect } from 'preact/hooks';

import { go } from '../actions';
import { operations, RUNNING, takeBack } from '../changes';
import type { OperationFacts } from '../contract';
import { applying, finding, panel, session, sessions, sidebarOpen, theFacts, useView } from '../store';
import { operationName } from '../text/format';
import { nextTheme, theme } from '../theme';

export function Header() {
  const view = useView();
  const title = theFacts().title || 'New session';
  // Who looks at another tab sees whether the agent works, or waits for them.
  const sign = view && view.questions.length > 0 ? '● question · ' : view?.state === 'running' ? '◌ ' : '';
  useEffect(() => {
    document.title = `${sign}${title} · Retake`;
  }, [sign, title]);
  const toggle = (kind: 'timeline' | 'help') => (panel.value = panel.value?.kind === kind ? null : { kind });
  return (
    <header class="top">
      <button
        type="button"
        class="quiet burger"
        aria-label="Sessions"
        aria-controls="sessions"
        aria-expanded={sidebarOpen.value}
        onClick={() => (sidebarOpen.value = !sidebarOpen.value)}
      >
        ☰
      </button>
      <h1 dir="auto" title={title}>
        {title}
      </h1>
      <ForkMark />
      <span class="space" />
      <TakeBack verb="Undo" sign="↶" facts={operations.value.undo} />
      <TakeBack verb="Redo" sign="↷" facts={operations.value.redo} />
      <button type="button" class="quiet" aria-expanded={panel.value?.kind === 'timeline'} onClick={() => toggle('timeline')}>
        Timeline
      </button>
      <button
        type="button"
        class="quiet"
        aria-label="Find in the conversation"
        title="Find in the conversation ( / )"
        aria-expanded={finding.value}
        onClick={() => (finding.value = !finding.value)}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M11.5 7A4.5 4.5 0 1 1 2.5 7a4.5 4.5 0 0 1 9 0ZM10.3 10.3 14 14" />
        </svg>
      </button>
      <button type="button" class="quiet" aria-label={`Colours: ${theme.value}`} title={`Colours: ${theme.value}`} onClick={nextTheme}>
        {theme.value === 'dark' ? '☾' : theme.value === 'light' ? '☀' : '◐'}
      </button>
      <button type="button" class="quiet" aria-label="Help" aria-expanded={panel.value?.kind === 'help'} onClick={() => toggle('help')}>
        ?
      </button>
    </header>
  );
}

/** Undo or redo of the one operation that its title names. */
function TakeBack({ verb, sign, facts }: { verb: 'Undo' | 'Redo'; sign: string; facts: OperationFacts | null }) {
  const view = useView();
  const about = facts ? `${verb} ${operationName(`${facts.kind} ${facts.what}`)}` : `There is nothing to ${verb.toLowerCase()}`;
  const isRunning = view?.state === 'running';
  const cannot = facts === null || isRunning || applying.value;
  return (
    <button
      type="button"
      class={`quiet ${verb.toLowerCase()}`}
      title={isRunning && facts ? `${about}: ${RUNNING}` : about}
      aria-label={about}
      aria-disabled={cannot}
      onClick={() => !cannot && void takeBack(facts.operation, verb)}
    >
      {sign} <span class="word">{verb}</span>
    </button>
  );
}

/** Where a fork came from, and the way there. */
function ForkMark() {
  const here = sessions.value.find((one) => one.session === session.value);
  if (!here?.forked_from) return null;
  const from = sessions.value.find((one) => one.session === here.forked_from);
  if (!from) return <span class="fork-mark dim">(fork)</span>;
  return (
    <button type="button" class="quiet fork-mark dim" title={`Back to the session that it was forked from: ${from.title}`} onClick={() => go(from.session)}>
      (fork)
    </button>
  );
}
