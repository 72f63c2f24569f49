// The sessions of the workspace: search, begin, go to, delete.

import { useEffect, useState } from 'preact/hooks';

import { create, go, remove } from '../actions';
import { listSessions } from '../api';
import type { SessionFacts } from '../contract';
import { session, sessions, sidebarOpen, workspace } from '../store';
import { age, count, pathText } from '../text/words';

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
        />
        <button type="button" onClick={() => void create()}>
          New
        </button>
      </div>
      <ul>
        {shown.map((one) => {
          const isHere = one.session === session.value;
          const more = [count(one.prompts, 'prompt', 'prompts'), forkOf(one), one.live && !isHere ? 'open' : ''].filter(Boolean);
          return (
            <li key={one.session} class={isHere ? 'here' : ''}>
              <button type="button" class="pick" aria-current={isHere ? 'page' : undefined} onClick={() => go(one.session)}>
                <span class="title" title={titleOf(one)}>
                  {titleOf(one)}
                </span>
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
      {shown.length === 0 ? <p class="dim">{isLooking ? 'looking …' : query ? 'nothing like it' : 'none yet'}</p> : null}
    </nav>
  );
}

function forkOf(one: SessionFacts): string {
  if (!one.forked_from) return '';
  const from = sessions.value.find((other) => other.session === one.forked_from);
  return from ? `a fork of “${from.title.slice(0, 30)}”` : 'a fork';
}

export function titleOf(one: SessionFacts): string {
  if (one.title) return one.title;
  return one.draft ? `(to be said) ${one.draft}` : '(nothing said yet)';
}
