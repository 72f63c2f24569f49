// The page: sessions, conversation, composer, and what is open beside them.

import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';

import { create, reconnect } from '../actions';
import { planTitle } from '../changes';
import { announced, composer, finding, link, panel, type Panel, session, sidebarOpen, theFacts, useView } from '../store';
import { sentence } from '../text/format';
import { Checkpoints } from './Checkpoints';
import { Composer } from './Composer';
import { DiffList } from './DiffPanel';
import { Todos } from './Entry';
import { Find } from './Find';
import { Header } from './Header';
import { Help } from './Help';
import { Notices } from './Notices';
import { PlanPanel } from './PlanPanel';
import { PromptMenu } from './PromptMenu';
import { Questions, Waiting } from './Question';
import { Sessions } from './Sessions';
import { Status } from './Status';
import { Summarise } from './Summarise';
import { Timeline } from './Timeline';
import { Transcript } from './Transcript';

/** Whether what is open beside the conversation covers it. */
const narrow = matchMedia('(max-width: 52rem)');
const isNarrow = signal(narrow.matches);
narrow.addEventListener('change', () => (isNarrow.value = narrow.matches));

export function App() {
  const key = session.value ?? 'none';
  const isCovered = isNarrow.value && panel.value !== null;
  return (
    <div class={`app ${panel.value ? 'has-panel' : ''}`}>
      <a class="skip" href="#composer">
        To the composer
      </a>
      <Sessions />
      {sidebarOpen.value ? <div class="shade" aria-hidden="true" onClick={() => (sidebarOpen.value = false)} /> : null}
      <main class="main" inert={isCovered}>
        <Header />
        <Connection />
        {finding.value ? <Find /> : null}
        <Transcript key={key} />
        <div class="dock">
          <Notices />
          <TodoList />
          <Questions />
          <Composer />
          <Status />
        </div>
      </main>
      <Side />
      <PromptMenu />
      <Waiting />
      <p class="sr" role="status" aria-live="polite">
        {announced.value}
      </p>
    </div>
  );
}

/** Where the server is, if not there. */
function Connection() {
  const at = link.value;
  if (at.kind === 'open') return null;
  if (at.kind === 'connecting') return <p class="link dim">connecting …</p>;
  if (at.kind === 'shut') {
    return (
      <p class="link bad" role="alert">
        This tab is not let in. Open the address that <code>retake serve</code> has printed.
      </p>
    );
  }
  if (at.kind === 'missing') {
    return (
      <p class="link bad" role="alert">
        {sentence(at.message)}. Choose another one, or{' '}
        <button type="button" onClick={() => void create()}>
          begin a new one
        </button>
      </p>
    );
  }
  if (at.attempt <= 1) return <p class="link dim">connecting …</p>;
  return (
    <p class="link warning" role="alert">
      The server is gone; what is shown is what was known. Trying again …{' '}
      <button type="button" onClick={reconnect}>
        Try now
      </button>
    </p>
  );
}

function TodoList() {
  useView();
  const todos = theFacts().todos;
  const open = todos.filter((todo) => todo.state !== 'done').length;
  if (open === 0) return null;
  const active = todos.find((todo) => todo.state === 'active');
  return (
    <details class="todo-list">
      <summary>
        Todo {todos.length - open} of {todos.length}
        {active ? <span class="dim"> · {active.text}</span> : null}
      </summary>
      <Todos todos={todos} />
    </details>
  );
}

function titleOf(open: Panel): string {
  switch (open.kind) {
    case 'plan':
      if (planTitle.value) return planTitle.value;
      return open.wanted.verb === 'Rewind' ? `Rewind to ${open.wanted.name}` : `${open.wanted.verb} ${open.wanted.name}`;
    case 'diff':
      return open.title;
    case 'summarise':
      return `Summarise ${open.name}`;
    case 'timeline':
      return 'Timeline';
    case 'checkpoints':
      return 'Checkpoints of this directory';
    case 'help':
      return 'Keys and commands';
  }
}

/** What is open beside the conversation. Whoever closes it is back where they were. */
function Side() {
  const open = panel.value;
  const box = useRef<HTMLElement>(null);
  const before = useRef<Element | null>(null);
  const isOpen = open !== null;
  // Before what is inside takes the focus, and at once when it is gone.
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    before.current = document.activeElement;
    if (!box.current?.contains(document.activeElement)) box.current?.focus();
    return () => {
      const at = document.activeElement;
      if (at !== document.body && at !== null && !box.current?.contains(at)) return;
      const old = before.current as HTMLElement | null;
      if (old?.isConnected && old !== document.body) old.focus();
      else composer()?.focus();
    };
  }, [isOpen]);
  if (!open) return null;
  return (
    <section class="side" ref={box} tabIndex={-1} role="dialog" aria-labelledby="side-title">
      <header>
        <h2 id="side-title">{titleOf(open)}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => (panel.value = null)}>
          ×
        </button>
      </header>
      <div class="side-body" key={open.kind} tabIndex={0} role="group" aria-labelledby="side-title">
        {open.kind === 'plan' ? <PlanPanel key={JSON.stringify(open.wanted)} wanted={open.wanted} /> : null}
        {open.kind === 'summarise' ? <Summarise key={JSON.stringify(open.extent)} extent={open.extent} prompts={open.prompts} /> : null}
        {open.kind === 'diff' ? <DiffList files={open.files} entry={open.entry} /> : null}
        {open.kind === 'timeline' ? <Timeline key={open.from ?? ''} from={open.from} /> : null}
        {open.kind === 'checkpoints' ? <Checkpoints /> : null}
        {open.kind === 'help' ? <Help /> : null}
      </div>
    </section>
  );
}
