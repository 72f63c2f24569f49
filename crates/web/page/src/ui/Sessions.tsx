// The sessions of the workspace: search, begin, go to, delete.

import { useEffect, useState } from 'preact/hooks';

import { fresh, go, remove } from '../actions';
import { listSessions } from '../api';
import type { SessionFacts } from '../contract';
import { focusOnce } from '../focus';
import { composer, session, sessions, sidebarOpen, workspace } from '../store';
import { age, count, pathText } from '../text/format';

export function Sessions() {
  const [filter, setFilter] = useState('');
  const [asked, setAsked] = useState<string | null>(null);
  const [found, setFound] = useState<{ query: string; ids: Set<string> }>({ query: '', ids: new Set() });
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const query = words.join(' ');
  // A title is the first line that was said; the server looks at the others.
  useEffect(() => {
    if (!query) return undefined;
    const timer = setTimeout(() => {
      const take = (list: { sessions: SessionFacts[] }) => setFound({ query, ids: new Set(list.sessions.map((one) => one.session)) });
      listSessions(query).then(take, () => setFound({ query, ids: new Set() }));
    }, 150);
    return () => clearTimeout(timer);
  }, [query, sessions.value]);
  const fits = (one: SessionFacts) => words.every((word) => titleOf(one).toLowerCase().includes(word)) || (found.query === query && found.ids.has(one.session));
  const shown = sessions.value.filter(fits);
  const isLooking = query !== '' && found.query !== query;
  const now = Date.now();
  return (
    <nav class={`sidebar ${sidebarOpen.value ? 'open' : ''}`} id="sessions" aria-label="Sessions">
      <header>
        <h2>Sessions</h2>
        <button type="button" class="quiet close" aria-label="Close the list of sessions" onClick={() => (sidebarOpen.value = false)}>
          ×
        </button>
      </header>
      <p class="workspace dim" title={pathText(workspace.value)}>
        <bdi dir="ltr">{pathText(workspace.value)}</bdi>
      </p>
      <div class="new">
        <input
          id="session-search"
          type="search"
          aria-label="Search titles and what was said"
          placeholder="Search"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return;
            event.preventDefault();
            event.stopPropagation();
            setFilter('');
            sidebarOpen.value = false;
            composer()?.focus();
          }}
        />
        <button type="button" onClick={() => void fresh()}>
          New
        </button>
      </div>
      <ul>
        {shown.map((one) => (
          <Row key={one.session} one={one} isAsked={asked === one.session} ask={setAsked} now={now} />
        ))}
      </ul>
      {shown.length === 0 ? <p class="dim">{isLooking ? 'looking …' : query ? 'No matches' : 'none yet'}</p> : null}
    </nav>
  );
}

function Row({ one, isAsked, ask, now }: { one: SessionFacts; isAsked: boolean; ask: (id: string | null) => void; now: number }) {
  const isHere = one.session === session.value;
  const more = [count(one.prompts, 'prompt', 'prompts'), one.live && !isHere ? 'in use' : ''].filter(Boolean);
  return (
    <li class={isHere ? 'here' : ''}>
      <button type="button" class="pick" aria-current={isHere ? 'page' : undefined} title={aboutOf(one)} onClick={() => go(one.session)}>
        <span class="title" dir="auto">
          {one.forked_from ? <span class="tag">fork</span> : null}
          {titleOf(one)}
        </span>
        <small class="dim">
          {age(one.at, now)} · {more.join(' · ')}
        </small>
        {one.forked_from && one.draft ? (
          <small class="dim next" dir="auto">
            to be said: {one.draft}
          </small>
        ) : null}
      </button>
      <button type="button" class="quiet delete" aria-label={`Delete the session ${titleOf(one)}`} title="Delete" aria-expanded={isAsked} onClick={() => ask(isAsked ? null : one.session)}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9M6.7 7v4M9.3 7v4" />
        </svg>
      </button>
      {isAsked ? <Sure one={one} close={() => ask(null)} /> : null}
    </li>
  );
}

/** Below the row, over what is there: nothing moves under the pointer. */
function Sure({ one, close }: { one: SessionFacts; close: () => void }) {
  const key = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    event.stopPropagation();
    close();
    (event.currentTarget as HTMLElement).parentElement?.querySelector<HTMLElement>('.delete')?.focus();
  };
  return (
    <div class="sure" role="group" aria-label="Delete the session?" onKeyDown={key}>
      <p>
        <strong>Delete it for good?</strong> Its conversation and the points to go back to in it are lost; labelled ones, its forks and your files stay.
      </p>
      <button
        type="button"
        class="danger"
        onClick={() => {
          close();
          void remove(one.session);
        }}
      >
        Delete
      </button>
      <button type="button" ref={focusOnce} onClick={close}>
        Keep
      </button>
    </div>
  );
}

/** All that is known of it, for whoever cannot tell it from another. */
function aboutOf(one: SessionFacts): string {
  const from = one.forked_from ? sessions.value.find((other) => other.session === one.forked_from) : undefined;
  const lines = [titleOf(one), from ? `a fork of “${from.title}”` : one.forked_from ? 'a fork' : '', one.live ? 'a server or a terminal has it open' : ''];
  return lines.filter(Boolean).join('\n');
}

export function titleOf(one: SessionFacts): string {
  if (one.title) return one.title;
  return one.draft ? `(to be said) ${one.draft}` : '(nothing said yet)';
}
