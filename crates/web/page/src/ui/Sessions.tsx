// The sessions of the workspace: search, begin, go to, delete.

import { useState } from 'preact/hooks';

import { create, go, remove } from '../actions';
import type { SessionFacts } from '../contract';
import { session, sessions, sidebarOpen, workspace } from '../store';
import { age, count } from '../text/words';

export function Sessions() {
  const [filter, setFilter] = useState('');
  const [asked, setAsked] = useState<string | null>(null);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = sessions.value.filter((one) => words.every((word) => titleOf(one).toLowerCase().includes(word)));
  const now = Date.now();
  return (
    <nav class={`sidebar ${sidebarOpen.value ? 'open' : ''}`} id="sessions" aria-label="Sessions">
      <header>
        <h2>Sessions</h2>
        <button type="button" class="quiet close" aria-label="Close the list of sessions" onClick={() => (sidebarOpen.value = false)}>
          ×
        </button>
      </header>
      <p class="workspace dim" title={workspace.value}>
        <bdi dir="ltr">{workspace.value}</bdi>
      </p>
      <div class="new">
        <input
          id="session-search"
          type="search"
          aria-label="Search sessions"
          placeholder="Search"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <button type="button" onClick={() => void create()}>
          New
        </button>
      </div>
      <ul>
        {shown.map((one) => {
          const isHere = one.session === session.value;
          const more = [count(one.prompts, 'prompt', 'prompts'), one.forked_from ? 'a fork' : '', one.live && !isHere ? 'open' : ''].filter(Boolean);
          return (
            <li key={one.session} class={isHere ? 'here' : ''}>
              <button type="button" class="pick" aria-current={isHere ? 'page' : undefined} onClick={() => go(one.session)}>
                <span class="title">{titleOf(one)}</span>
                <small class="dim">
                  {age(one.at, now)} · {more.join(' · ')}
                </small>
              </button>
              {asked === one.session ? (
                <span class="sure" role="group" aria-label="Delete the session?">
                  <button
                    type="button"
                    class="danger"
                    onClick={() => {
                      setAsked(null);
                      void remove(one.session);
                    }}
                  >
                    Delete
                  </button>
                  <button type="button" onClick={() => setAsked(null)}>
                    Keep
                  </button>
                </span>
              ) : (
                <button type="button" class="quiet delete" aria-label={`Delete the session ${titleOf(one)}`} onClick={() => setAsked(one.session)}>
                  ×
                </button>
              )}
            </li>
          );
        })}
      </ul>
      {shown.length === 0 ? <p class="dim">{filter ? 'nothing like it' : 'none yet'}</p> : null}
    </nav>
  );
}

export function titleOf(one: SessionFacts): string {
  if (one.title) return one.title;
  return one.draft ? `(to be said) ${one.draft}` : '(nothing said yet)';
}
