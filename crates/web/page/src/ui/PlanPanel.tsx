// The plan of a change: what it would do to every file and to the conversation, what has to be decided, what cannot be undone; then it is
// made, once. Everything here is the session's answer; a decision is sent and the plan asked for again.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { Refusal } from '../api';
import { applyChange, planTitle, RUNNING } from '../changes';
import type { Bytes, Change, ConflictFacts, EntryId, FileDiff, OnConflict, RewindDocument, Scope } from '../contract';
import { refused, send } from '../commands';
import { applying, panel, theFacts, underWay, useView, type Wanted } from '../store';
import { type Action, changedFiles, count, meaning, pathKey, pathText, sentence, willDo } from '../text/format';
import { head } from '../view';
import { type Choices, Conflicts, Files, Leaves, Stays, Warnings } from './PlanParts';
import { promptsGo, SCOPES } from './PromptMenu';
import { Backticks } from './Backticks';

interface Shown {
  /** Where the head was when it was worked out. */
  head: EntryId | null;
  plan: RewindDocument | null;
  refusal: Refusal | null;
  diffs: FileDiff[] | null;
}

export function PlanPanel({ wanted: goal }: { wanted: Wanted }) {
  const wanted = goal.change;
  const view = useView();
  const [scope, setScope] = useState<Scope | null>(wanted.do === 'rewind' ? wanted.scope : null);
  const [paths, setPaths] = useState<Bytes[]>(wanted.paths ?? []);
  const [choices, setChoices] = useState<Choices>(new Map());
  const [isAcross, setAcross] = useState(false);
  const [shown, setShown] = useState<Shown>({ head: null, plan: null, refusal: null, diffs: null });
  const [isWaiting, setWaiting] = useState(true);
  const [problem, setProblem] = useState<Refusal | null>(null);
  const [asked, setAsked] = useState(0);
  const generation = useRef(0);
  const apply = useRef<HTMLButtonElement>(null);
  const box = useRef<HTMLDivElement>(null);

  const change = useMemo<Change>(() => {
    const scoped = wanted.do === 'rewind' && scope ? { ...wanted, scope } : wanted;
    return { ...scoped, paths, choices: [...choices.values()], across_branches: isAcross };
  }, [wanted, scope, paths, choices, isAcross]);
  const place = view ? head(view) : null;

  // An answer to an older question is dropped; what was shown before stays until the new one is there.
  useEffect(() => {
    generation.current += 1;
    const mine = generation.current;
    const isMine = () => mine === generation.current;
    const work = async () => {
      setWaiting(true);
      const answer = await send({ type: 'plan', change });
      if (!isMine()) return;
      if (answer.refused) {
        setShown({ head: place, plan: answer.refused.document ?? null, refusal: answer.refused, diffs: [] });
        return setWaiting(false);
      }
      if (answer.ok.type !== 'change') return setWaiting(false);
      const plan = answer.ok.document;
      const decided = decide(plan.conflicts, choices);
      // The safe choice holds until another is made; what comes of it is asked at once.
      if (decided !== choices) return setChoices(decided);
      setShown((old) => ({ head: place, plan, refusal: null, diffs: old.diffs }));
      const needsLines = plan.scope !== 'conversation' && plan.files.length > 0;
      const lines = needsLines ? await send({ type: 'diff', of: { what: 'change', change } }) : null;
      if (!isMine()) return undefined;
      // The lines are of the plan that comes with them, which may be newer.
      const drawn = lines?.ok?.type === 'diff' ? lines.ok : null;
      setShown({ head: place, plan: drawn?.plan ?? plan, refusal: null, diffs: drawn?.files ?? [] });
      return setWaiting(false);
    };
    void work();
    return () => {
      generation.current += 1;
    };
  }, [change, place, view?.state, asked]);

  const { plan, refusal, diffs } = shown;
  // Once it is known what there is: where something has to be decided, Enter must not be the decision.
  const isKnown = plan !== null && !isWaiting;
  const hasConflicts = (plan?.conflicts.length ?? 0) > 0;
  useLayoutEffect(() => {
    if (!isKnown) return;
    const first = hasConflicts ? box.current?.querySelector<HTMLElement>('.conflict input') : apply.current;
    const at = document.activeElement;
    if (at === null || at === document.body || at.id === 'composer' || at.classList.contains('side') || at === apply.current) first?.focus();
  }, [isKnown, hasConflicts]);

  // Another client may have rewound to before this prompt: then there is nothing left of it that this plan could take back.
  const wasThere = useRef(wanted.do === 'rewind' && theFacts().at.has(wanted.entry));
  const isGone = wasThere.current && wanted.do === 'rewind' && !theFacts().at.has(wanted.entry) && !applying.value;

  const isRunning = view?.state === 'running';
  const blocked = plan !== null && plan.blocked.length > 0;
  const needsBranch = Boolean(plan?.branch) && !isAcross;
  const isThere = paths.length > 0 && scope === 'code' && plan !== null && !isWaiting && changedFiles(plan.files).length === 0 && !hasConflicts;
  const why = isRunning
    ? sentence(RUNNING)
    : refusal
      ? null
      : needsBranch
        ? 'Another branch is checked out: confirm below to continue'
        : blocked
          ? 'A directory is in the way'
          : null;
  const cannot = isGone || isThere || isRunning || refusal !== null || plan === null || blocked || needsBranch || isWaiting || applying.value;
  // A single file is restored or deleted, as the plan says; the rest does not go back.
  const only = paths.length > 0 ? paths.map(pathText).join(', ') : null;
  const [verb, name] = only !== null && goal.verb === 'Rewind' ? (['Restore', only] as const) : ([goal.verb, goal.name] as const);
  const planned = plan?.files.find((file) => file.action !== 'unchanged' && paths.length === 1 && pathKey(file.path) === pathKey(paths[0] as Bytes));
  const does = ONE[planned?.action as Action] ?? 'Restore';
  const title = only === null ? null : `${does} ${only}`;
  // The name of what was asked for says of which point it is; what is deleted was not there then.
  const whole = title !== null && goal.verb === 'Restore' && planned?.action !== 'delete' ? `${does} ${goal.name}` : title;
  useLayoutEffect(() => {
    planTitle.value = whole;
  }, [whole]);
  const act = async () => {
    // A second click may come before the first has been drawn.
    if (cannot || applying.value) return;
    setProblem(null);
    const failed = await applyChange({ ...goal, change, verb, name }, shown.head, plan);
    const isOpen = panel.value?.kind === 'plan' && panel.value.wanted === goal;
    // Whoever has closed it, or has gone elsewhere, is told all the same.
    if (!isOpen) return void (failed && refused(failed));
    if (!failed) return void (panel.value = null);
    setProblem(failed);
    setAsked((count) => count + 1);
  };
  const choose = (path: Bytes, choice: OnConflict) => setChoices(new Map(choices).set(pathKey(path), [path, choice]));
  const canRestrict = paths.length === 0 && wanted.do === 'rewind' && scope !== 'conversation';
  const restrict = (path: Bytes) => {
    setScope('code');
    setPaths([path]);
  };
  const kept = [...choices].filter(([key, [, choice]]) => choice === 'keep' && plan?.conflicts.some((one) => pathKey(one.path) === key)).length;
  const label = kept > 0 ? (title ? 'Keep it as it is' : `${verb}, keeping ${count(kept, 'file as it is', 'files as they are')}`) : (title ?? verb);

  // Undo is about an operation, not about a point; where files stay, and of a single one, the rest tells all.
  const hasPoint = (wanted.do === 'rewind' || wanted.do === 'checkpoint') && only === null && plan?.scope !== 'conversation';
  const means = hasPoint ? meaning(plan?.means, goal.name) : '';

  if (isGone) return <Gone />;
  return (
    <div class="plan" ref={box}>
      {means ? <p class="means">{means}</p> : null}
      {wanted.do === 'rewind' && only === null ? (
        <fieldset class="scopes">
          <legend class="sr">What goes back</legend>
          {SCOPES.map(([one, name]) => (
            <label key={one} class={scope === one ? 'on' : ''}>
              <input type="radio" name="scope" checked={scope === one} disabled={applying.value} onChange={() => setScope(one)} />
              {name}
            </label>
          ))}
        </fieldset>
      ) : null}
      {only !== null && !wanted.paths?.length ? (
        <p class="only">
          Only <code>{only}</code>{' '}
          <button
            type="button"
            onClick={() => {
              setPaths([]);
              setScope(wanted.do === 'rewind' ? wanted.scope : null);
            }}
          >
            All files
          </button>
        </p>
      ) : null}
      <div class="actions">
        <button type="button" class="primary" ref={apply} aria-disabled={cannot} aria-busy={applying.value} onKeyDown={notHeld} onClick={() => void act()}>
          {underWay.value ? `${underWay.value} in progress …` : label}
        </button>
        <button type="button" onClick={() => (panel.value = null)}>
          {applying.value ? 'Close' : 'Cancel'}
        </button>
        <span class="summary-line" role="status">
          {isWaiting ? 'Planning …' : plan && !refusal ? summary(plan, only !== null) : ''}
        </span>
      </div>
      {why ? <p class="warning">{why}</p> : null}
      {problem ? (
        <p class="bad" role="alert">
          <Backticks text={sentence(problem.message) + (problem.hint ? ` · ${problem.hint}` : '')} />
        </p>
      ) : null}
      {refusal ? (
        <p class="warning" role="alert">
          <Backticks text={`Not possible: ${refusal.message}${refusal.hint ? ` · ${refusal.hint}` : ''}`} />{' '}
          <button type="button" onClick={() => setAsked((times) => times + 1)}>
            Try again
          </button>
        </p>
      ) : null}
      {plan ? (
        <>
          <Conflicts plan={plan} diffs={diffs} choices={choices} choose={choose} />
          <Warnings plan={plan} isAcross={isAcross} setAcross={setAcross} />
          <Stays plan={plan} isPart={only !== null} />
          <Leaves plan={plan} />
          <Files plan={plan} diffs={diffs} only={canRestrict ? restrict : null} />
        </>
      ) : null}
    </div>
  );
}

/** In place of a plan whose prompt has left the conversation. */
function Gone() {
  return (
    <div class="plan">
      <p class="warning" role="alert">
        This prompt is not in the conversation any more: another client rewound it
      </p>
      <div class="actions">
        <button type="button" onClick={() => (panel.value = null)}>
          Close
        </button>
      </div>
    </div>
  );
}

/** A key that is still held down from the menu is not meant for the button. */
function notHeld(event: KeyboardEvent): void {
  if (event.repeat) event.preventDefault();
}

/** What is decided about each conflict: what was, where it still can be, else the safe choice. The same map if nothing is another. */
export function decide(conflicts: ConflictFacts[], known: Choices): Choices {
  const next: Choices = new Map(known);
  let isOther = false;
  for (const conflict of conflicts) {
    const key = pathKey(conflict.path);
    const can: OnConflict[] = conflict.choices.filter((choice) => choice !== 'stop');
    const old = known.get(key)?.[1];
    if (old && can.includes(old)) continue;
    next.set(key, [conflict.path, can[0] ?? 'keep']);
    isOther = true;
  }
  return isOther ? next : known;
}

/** The words of the button for a single file. */
const ONE: Record<Action, string> = { restore: 'Restore', recreate: 'Recreate', delete: 'Delete', mode: 'Restore' };

/** A plan on one line. Of a single file, the button and what is below tell it. */
function summary(plan: RewindDocument, isPart: boolean): string {
  const said = promptsGo(plan);
  if (plan.scope === 'conversation') return `${said || 'no prompts change'} · files stay as they are`;
  const isSame = changedFiles(plan.files).length === 0 && plan.conflicts.length === 0;
  if (isPart) return isSame ? 'Already as it was then' : '';
  const conflicts = plan.conflicts.length > 0 ? count(plan.conflicts.length, 'conflict', 'conflicts') : '';
  return [willDo(plan) || (conflicts ? '' : 'no file changes'), conflicts, said].filter(Boolean).join(' · ');
}
