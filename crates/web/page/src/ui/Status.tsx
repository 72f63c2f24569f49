// What the session does, which model, how full its context is, what it cost, how large the store is.

import { useEffect, useState } from 'preact/hooks';

import { link, runningSince, store, theFacts, useView } from '../store';
import { count, elapsed, size, tokens } from '../text/format';

export function Status() {
  const view = useView();
  const [now, setNow] = useState(Date.now());
  const since = runningSince.value;
  useEffect(() => {
    if (since === null) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [since]);
  if (!view) return <footer class="status" aria-label="Status" />;
  const facts = theFacts();
  const jobs = view.jobs.filter((job) => job.ended === null).length;
  const model = view.model.includes('/') ? view.model.slice(view.model.indexOf('/') + 1) : view.model;
  const window = view.window ?? null;
  const context =
    facts.context === null
      ? ''
      : window
        ? `context ${Math.floor((facts.context * 100) / window)}% of ${tokens(window)}`
        : `context ${tokens(facts.context)}`;
  const size_ = store.value;
  const written = facts.turn + Math.floor((view.coming.text.length + view.coming.thinking.length) / 4);
  let [word, tone] = ['● ready', 'good'];
  if (view.questions.length > 0) [word, tone] = ['? waiting for you', 'warning'];
  else if (view.state === 'running' || (view.state === 'paused' && since !== null)) {
    const what = view.summarising ? ' · summarising' : written > 0 ? ` · ${tokens(written)} tokens` : '';
    [word, tone] = [`◌ ${elapsed(since === null ? 0 : now - since)}${what}`, 'accent'];
  }
  // What is shown is what was known.
  const at = link.value;
  if (at.kind === 'shut' || at.kind === 'missing' || (at.kind === 'waiting' && at.attempt > 1)) [word, tone] = ['○ offline', 'warning'];
  return (
    <footer class="status" aria-label="Status">
      <span class={`state ${tone}`}>{word}</span>
      {view.held > 0 ? <span class="warning">{view.held} queued</span> : null}
      {jobs > 0 ? <span class="warning">{count(jobs, 'background job', 'background jobs')}</span> : null}
      {view.baseline ? (
        <span>
          first snapshot: {view.baseline.files} files, {size(view.baseline.bytes)}
        </span>
      ) : null}
      <span class="model" title={view.model}>
        {model}
      </span>
      {context ? <span>{context}</span> : null}
      {facts.cost === null ? null : <span>${facts.cost.toFixed(2)}</span>}
      {size_ ? <span class={size_.bytes > size_.budget ? 'warning' : ''}>store {size(size_.bytes)}</span> : null}
    </footer>
  );
}
