// The parts of a plan: what has to be decided, what stays, what leaves the conversation, and each file. All of it is the session's answer.

import { useMemo, useState } from 'preact/hooks';

import type { Bytes, FileDiff, OnConflict, PlannedFile, RewindDocument } from '../contract';
import { applying, theView } from '../store';
import { clean, count, counted, pathKey, pathText } from '../text/words';
import { DiffLines, FileBox } from './Diff';
import { Ticked } from './Ticked';

export type Choices = Map<string, [Bytes, OnConflict]>;

const CHOICE: Record<OnConflict, string> = { stop: 'Stop', keep: 'Keep', overwrite: 'Overwrite', merge: 'Merge' };
const COMES: Record<OnConflict, string> = {
  stop: 'everything stops',
  keep: 'is kept: nothing changes in it. Going back would have changed (not done):',
  overwrite: 'is overwritten; what is there now stays in the safety checkpoint:',
  merge: 'is merged: only the session’s own changes are taken out:',
};
const NO_MERGE = 'Merge is not offered: it is for texts in which the changes of both do not touch each other';

export function Conflicts(props: { plan: RewindDocument; diffs: FileDiff[] | null; choices: Choices; choose: (path: Bytes, choice: OnConflict) => void }) {
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
            {conflict.choices.includes('merge') ? null : <p class="dim">{NO_MERGE}</p>}
            <p class={choice === 'overwrite' ? 'warning' : 'dim'}>{COMES[choice]}</p>
            {diff ? (
              <div class={choice === 'keep' ? 'not-done' : ''}>
                <DiffLines file={diff} />
              </div>
            ) : null}
          </div>
        );
      })}
    </section>
  );
}

export function Warnings({ plan, isAcross, setAcross }: { plan: RewindDocument; isAcross: boolean; setAcross: (is: boolean) => void }) {
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

/** A path, in which nothing is a mark, and what is said of it. */
type Named = { path: Bytes; text: string };

/** A heading and what is below it, the rest counted. */
function Listed({ title, items, total }: { title: string; items: (string | Named)[]; total?: number }) {
  const [shown, setShown] = useState(8);
  if (items.length === 0) return null;
  const rest = Math.max(total ?? 0, items.length) - Math.min(shown, items.length);
  return (
    <section class="listed">
      <h3>{title}</h3>
      <ul>
        {items.slice(0, shown).map((item, at) => (
          <li key={at}>
            {typeof item === 'string' ? (
              <Ticked text={clean(item)} />
            ) : (
              <>
                {pathText(item.path)}
                {'  '}
                <Ticked text={clean(item.text)} />
              </>
            )}
          </li>
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

/** What does not go back. Where only the conversation does, that nothing else does is what was asked for, and no warning. */
export function Stays({ plan }: { plan: RewindDocument }) {
  const jobs = (theView()?.jobs ?? []).filter((job) => job.ended === null).map((job) => `${job.job}  ${job.command}`);
  if (plan.scope === 'conversation') {
    return <Listed title="Files and side effects stay, also of:" items={plan.ledger.map((item) => `${item.kind}: ${item.what}`)} />;
  }
  return (
    <div class="stays">
      <Listed
        title="Cannot be undone by going back:"
        items={plan.ledger.map((item) => `${item.kind}: ${item.what}${item.remedy ? `  \`${item.remedy}\`` : ''}`)}
      />
      <Listed title="Stays although it was not there then:" items={plan.kept} />
      <Listed
        title={`Not captured then: ${count(plan.gaps_total, 'gap', 'gaps')}`}
        items={plan.gaps}
        total={plan.gaps_total}
      />
      <Listed title="Still open for writing in a program:" items={plan.still_open.map((path) => ({ path, text: '' }))} />
      <Listed title="Background jobs: ended if they were started since then:" items={jobs} />
    </div>
  );
}

/** What becomes of what was said. */
export function Leaves({ plan }: { plan: RewindDocument }) {
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

/** The letters of `retake diff`, and what they mean here. */
const LETTERS: Record<string, [string, string]> = {
  restore: ['M', 'goes back to its old content'],
  delete: ['D', 'is deleted: it was not there'],
  recreate: ['A', 'comes back'],
  mode: ['M', 'its permissions go back'],
};

export function Files({ plan, diffs, only }: { plan: RewindDocument; diffs: FileDiff[] | null; only: ((path: Bytes) => void) | null }) {
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
    <div class="with-button">
      <FileBox file={box} letter={letter} letterName={name} remark={remark} isOpen={props.isOpen} />
      {only ? (
        <button type="button" class="quiet only-this" aria-label={`Only this file: ${pathText(file.path)}`} onClick={() => only(file.path)}>
          Only this file
        </button>
      ) : null}
    </div>
  );
}
