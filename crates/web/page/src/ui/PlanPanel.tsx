// The plan of a change: what it would do to every file and to the conversation, what has to be decided, what cannot be undone; then it is
// made, once. Everything here is the session's answer; a decision is sent and the plan asked for again.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { applyChange, RUNNING, send, sentence } from '../actions';
import type { Bytes, Change, ConflictFacts, EntryId, FileDiff, OnConflict, PlannedFile, Refusal, RewindDocument, Scope } from '../contract';
import { applying, panel, theView, useView } from '../store';
import { count, counted, pathKey, pathText } from '../text/words';
import { head } from '../view';
import { DiffLines, FileBox } from './Diff';
import { changes, SCOPES } from './PromptMenu';

type Choices = Map<string, [Bytes, OnConflict]>;

interface Shown {
  /** Where the head was when it was worked out. */
  head: EntryId | null;
  plan: RewindDocument | null;
  refusal: Refusal | null;
  diffs: FileDiff[] | null;
}

export function PlanPanel({ change: wanted }: { change: Change }) {
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

  const change = useMemo<Change>(() => {
    const goal = wanted.do === 'rewind' && scope ? { ...wanted, scope } : wanted;
    return { ...goal, paths, choices: [...choices.values()], across_branches: isAcross };
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
      setShown({ head: place, plan, refusal: null, diffs: lines?.ok?.type === 'diff' ? lines.ok.files : [] });
      return setWaiting(false);
    };
    void work();
    return () => {
      generation.current += 1;
    };
  }, [change, place, view?.state, asked]);

  useEffect(() => apply.current?.focus(), []);

  const { plan, refusal, diffs } = shown;
  const isRunning = view?.state === 'running';
  const blocked = plan !== null && plan.blocked.length > 0;
  const needsBranch = Boolean(plan?.branch) && !isAcross;
  const why = isRunning
    ? sentence(RUNNING)
    : refusal
      ? null
      : needsBranch
        ? 'Another branch is checked out: say below whether to go on'
        : blocked
          ? 'A directory is in the way'
          : null;
  const cannot = isRunning || refusal !== null || plan === null || blocked || needsBranch || isWaiting || applying.value;
  const act = async () => {
    // A second click may come before the first has been drawn.
    if (cannot || applying.value) return;
    setProblem(null);
    const failed = await applyChange(change, shown.head, plan);
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
  const verb = wanted.do === 'undo' ? 'Undo' : wanted.do === 'redo' ? 'Redo' : 'Rewind';

  return (
    <div class="plan">
      {wanted.do === 'rewind' ? (
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
      {paths.length > 0 ? (
        <p class="only">
          Only {paths.map(pathText).join(', ')}{' '}
          <button type="button" class="quiet" onClick={() => setPaths([])}>
            all files
          </button>
        </p>
      ) : null}
      <div class="actions">
        <button type="button" class="primary" ref={apply} aria-disabled={cannot} aria-busy={applying.value} onKeyDown={notHeld} onClick={() => void act()}>
          {applying.value ? `${verb} is under way …` : verb}
        </button>
        <button type="button" disabled={applying.value} onClick={() => (panel.value = null)}>
          Cancel
        </button>
        <span class="summary-line" role="status">
          {isWaiting ? 'working out what would change …' : plan && !refusal ? summary(plan) : ''}
        </span>
      </div>
      {why ? <p class="warning">{why}</p> : null}
      {problem ? (
        <p class="bad" role="alert">
          {sentence(problem.message)}
          {problem.hint ? ` · ${problem.hint}` : ''}
        </p>
      ) : null}
      {refusal ? (
        <p class="warning" role="alert">
          It cannot be done: {refusal.message}
          {refusal.hint ? ` · ${refusal.hint}` : ''}
        </p>
      ) : null}
      {plan ? (
        <>
          <Conflicts plan={plan} diffs={diffs} choices={choices} choose={choose} />
          <Warnings plan={plan} isAcross={isAcross} setAcross={setAcross} />
          <Stays plan={plan} />
          <Leaves plan={plan} />
          <Files plan={plan} diffs={diffs} only={canRestrict ? restrict : null} />
        </>
      ) : null}
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

/** A plan on one line. */
function summary(plan: RewindDocument): string {
  const said = conversation(plan);
  if (plan.scope === 'conversation') return `${said} · files and side effects stay`;
  const files = changes(plan);
  const conflicts = plan.conflicts.length > 0 ? count(plan.conflicts.length, 'conflict', 'conflicts') : '';
  return [files === 0 ? 'no file changes' : count(files, 'file', 'files'), conflicts, said].filter(Boolean).join(' · ');
}

function conversation(plan: RewindDocument): string {
  const planned = plan.conversation;
  if (!planned) return '';
  const [leaves, returns] = [planned.leaves.length, planned.returns.length];
  if (returns > 0) {
    return [leaves > 0 ? count(leaves, 'prompt leaves', 'prompts leave') : '', count(returns, 'prompt comes back', 'prompts come back')].filter(Boolean).join(', ');
  }
  if (leaves === 0) return '';
  return leaves === 1 ? 'undoes this prompt only' : `also undoes ${count(leaves - 1, 'later prompt', 'later prompts')}`;
}

const CHOICE: Record<OnConflict, string> = { stop: 'Stop', keep: 'Keep', overwrite: 'Overwrite', merge: 'Merge' };
const COMES: Record<OnConflict, string> = {
  stop: 'everything stops',
  keep: 'is kept: nothing changes in it; going back would have changed:',
  overwrite: 'is overwritten; what is there now stays in the safety checkpoint:',
  merge: 'is merged: only the session’s own changes are taken out:',
};

function Conflicts(props: { plan: RewindDocument; diffs: FileDiff[] | null; choices: Choices; choose: (path: Bytes, choice: OnConflict) => void }) {
  const { plan, diffs, choices } = props;
  if (plan.conflicts.length === 0) return null;
  return (
    <section class="conflicts" aria-label="Conflicts">
      <h3>{count(plan.conflicts.length, 'file needs', 'files need')} a decision</h3>
      {plan.conflicts.map((conflict) => {
        const key = pathKey(conflict.path);
        const choice = choices.get(key)?.[1] ?? conflict.choice;
        const diff = diffs?.find((one) => pathKey(one.path) === key);
        return (
          <div class="conflict" key={key}>
            <fieldset>
              <legend>
                <span class="path">{pathText(conflict.path)}</span> <span class="warning">{conflict.text}</span>
              </legend>
              {conflict.choices
                .filter((one) => one !== 'stop')
                .map((one) => (
                  <label key={one} class={choice === one ? 'on' : ''}>
                    <input type="radio" name={`conflict-${key}`} checked={choice === one} disabled={applying.value} onChange={() => props.choose(conflict.path, one)} />
                    {CHOICE[one]}
                  </label>
                ))}
            </fieldset>
            <p class={choice === 'overwrite' ? 'warning' : 'dim'}>{COMES[choice]}</p>
            {diff ? <DiffLines file={diff} /> : null}
          </div>
        );
      })}
    </section>
  );
}

function Warnings({ plan, isAcross, setAcross }: { plan: RewindDocument; isAcross: boolean; setAcross: (is: boolean) => void }) {
  return (
    <>
      {plan.blocked.map((path) => (
        <p key={pathKey(path)} class="bad">
          ! {pathText(path)}/ holds files that are not captured, so nothing can take its place
        </p>
      ))}
      {plan.branch || isAcross ? (
        <label class="branch warning">
          <input type="checkbox" checked={isAcross} onChange={(event) => setAcross(event.currentTarget.checked)} />
          {plan.branch ? (
            <span>
              Go on although the branch <code>{plan.branch.now}</code> is checked out, and it was <code>{plan.branch.then}</code> then
            </span>
          ) : (
            <span>Go on although another branch is checked out than then</span>
          )}
        </label>
      ) : null}
      {plan.foreign > 0 ? <p class="warning">Of these, the session never wrote {count(plan.foreign, 'path', 'paths')}</p> : null}
    </>
  );
}

/** A heading and what is below it, the rest counted. */
function Listed({ title, items, total }: { title: string; items: string[]; total?: number }) {
  const [shown, setShown] = useState(8);
  if (items.length === 0) return null;
  const rest = Math.max(total ?? 0, items.length) - Math.min(shown, items.length);
  return (
    <section class="listed">
      <h3>{title}</h3>
      <ul>
        {items.slice(0, shown).map((item, at) => (
          <li key={at}>{item}</li>
        ))}
      </ul>
      {rest > 0 ? (
        <button type="button" class="more" onClick={() => setShown(shown + 200)}>
          … and {rest} more
        </button>
      ) : null}
    </section>
  );
}

/** What does not go back. */
function Stays({ plan }: { plan: RewindDocument }) {
  const jobs = (theView()?.jobs ?? []).filter((job) => job.ended === null).map((job) => `${job.job}  ${job.command}`);
  return (
    <div class="stays">
      <Listed
        title="Cannot be undone by going back:"
        items={plan.ledger.map((item) => `${item.kind}: ${item.what}${item.remedy ? `  \`${item.remedy}\`` : ''}`)}
      />
      <Listed title="Stays although it was not there then:" items={plan.kept.map((kept) => `${pathText(kept.path)}  ${kept.text}`)} />
      <Listed
        title={`Not captured then: ${count(plan.gaps_total, 'gap', 'gaps')}`}
        items={plan.gaps.map((gap) => `${pathText(gap.path)}  ${gap.text}`)}
        total={plan.gaps_total}
      />
      <Listed title="Still open for writing in a program:" items={plan.still_open.map(pathText)} />
      {plan.scope === 'conversation' ? null : <Listed title="Background jobs: ended if they were started since then:" items={jobs} />}
    </div>
  );
}

/** What becomes of what was said. */
function Leaves({ plan }: { plan: RewindDocument }) {
  const planned = plan.conversation;
  return (
    <>
      {planned && (planned.leaves.length > 1 || planned.returns.length > 0) ? (
        <Listed title="Leaves the conversation:" items={planned.leaves.map((prompt) => prompt.text)} />
      ) : null}
      {planned ? <Listed title="Comes back into the conversation:" items={planned.returns.map((prompt) => prompt.text)} /> : null}
      {planned?.went_on ? <p class="warning">The conversation went on since: it stays where it is</p> : null}
      {planned?.removed ? <p class="warning">What was said was removed for good: the conversation stays where it is</p> : null}
      <Listed title="Also undoes:" items={counted(plan.undoes)} />
    </>
  );
}

const LETTERS: Record<string, [string, string]> = {
  restore: ['R', 'restored'],
  delete: ['D', 'deleted'],
  recreate: ['A', 'comes back'],
  mode: ['M', 'permissions restored'],
};

function Files({ plan, diffs, only }: { plan: RewindDocument; diffs: FileDiff[] | null; only: ((path: Bytes) => void) | null }) {
  const conflicts = new Set(plan.conflicts.map((conflict) => pathKey(conflict.path)));
  const found = useMemo(() => new Map((diffs ?? []).map((diff) => [pathKey(diff.path), diff])), [diffs]);
  const files = plan.files.filter((file) => file.action !== 'unchanged' && !conflicts.has(pathKey(file.path)));
  const [shown, setShown] = useState(60);
  return (
    <section aria-label="Files">
      {files.slice(0, shown).map((file) => (
        <PlanFile key={pathKey(file.path)} file={file} diff={found.get(pathKey(file.path))} isOpen={files.length <= 12} only={files.length > 1 ? only : null} />
      ))}
      {files.length > shown ? (
        <button type="button" class="more" onClick={() => setShown(shown + 300)}>
          … and {files.length - shown} more files
        </button>
      ) : null}
      {plan.files.some((file) => file.certainty === 'presumed') ? (
        <p class="dim">What changed while its commands ran is presumed to be the session’s own.</p>
      ) : null}
    </section>
  );
}

function PlanFile(props: { file: PlannedFile; diff: FileDiff | undefined; isOpen: boolean; only: ((path: Bytes) => void) | null }) {
  const { file, diff, only } = props;
  const [letter, name] = LETTERS[file.action ?? ''] ?? ['?', file.action ?? 'not known'];
  const remark = file.certainty === 'certain' || file.certainty === 'presumed' ? undefined : (file.certainty ?? undefined);
  const box: FileDiff = diff ?? { path: file.path, added: 0, removed: 0, hunks: [] };
  return (
    <FileBox file={box} letter={letter} letterName={name} remark={remark} isOpen={props.isOpen}>
      {only ? (
        <button type="button" class="quiet only-this" onClick={() => only(file.path)}>
          Only this file
        </button>
      ) : null}
    </FileBox>
  );
}
