// The parts of a plan: what has to be decided, what stays, what leaves the conversation, and each file. All of it is the session's answer.

import { useMemo, useState } from 'preact/hooks';

import type { Bytes, FileDiff, OnConflict, PlannedFile, RewindDocument } from '../contract';
import { applying, theView } from '../store';
import { actionDone, clean, count, counted, leftBehind, pathKey, pathText } from '../text/format';
import { DiffLines, FileBox } from './Diff';
import { NotRestored } from './NotRestored';
import { Backticks } from './Backticks';

export type Choices = Map<string, [Bytes, OnConflict]>;

const CHOICE: Record<OnConflict, string> = { stop: 'Stop', keep: 'Keep', overwrite: 'Overwrite', merge: 'Merge' };
const COMES: Record<OnConflict, string> = {
  stop: 'Nothing is changed.',
  keep: 'Stays as it is. This change is not made:',
  overwrite: 'The file as it is now is overwritten; Undo brings it back:',
  merge: 'This session’s changes are removed, the others are kept:',
};
const NO_MERGE = 'Merge is not possible: the changes overlap, or this is not a text file.';
/** Why a file needs a decision, by the session's name for it; else in the session's words. */
const WHY: Record<string, string> = {
  changed_by_others: 'was also changed outside this session',
  changed_since: 'was also changed outside this session',
  changed_later: 'was changed again later in this session',
  contested: 'may also have been changed by another session',
};

export function Conflicts(props: { plan: RewindDocument; diffs: FileDiff[] | null; choices: Choices; choose: (path: Bytes, choice: OnConflict) => void }) {
  const { plan, diffs, choices } = props;
  if (plan.conflicts.length === 0) return null;
  return (
    <section class="conflicts" aria-label="Conflicts">
      <h3>{count(plan.conflicts.length, 'conflict', 'conflicts')}</h3>
      {plan.conflicts.map((conflict) => {
        const key = pathKey(conflict.path);
        const choice = choices.get(key)?.[1] ?? conflict.choice;
        const diff = diffs?.find((one) => pathKey(one.path) === key);
        return (
          <div class="conflict" key={key}>
            <fieldset>
              <legend>
                <span class="path">{pathText(conflict.path)}</span> <span class="warning">{WHY[conflict.why] ?? conflict.text}</span>
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
          {pathText(path)}/ contains files that Retake did not capture, so it cannot be replaced
        </p>
      ))}
      {plan.branch || isAcross ? (
        <label class="branch warning">
          <input type="checkbox" checked={isAcross} onChange={(event) => setAcross(event.currentTarget.checked)} />
          {plan.branch ? (
            <span>
              Continue, although the branch is <code>{plan.branch.now}</code> now and was <code>{plan.branch.then}</code> then
            </span>
          ) : (
            <span>Continue, although another branch is checked out now</span>
          )}
        </label>
      ) : null}
      {plan.foreign > 0 ? <p class="warning">Includes {count(plan.foreign, 'file', 'files')} that this session never changed</p> : null}
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
              <Backticks text={clean(item)} />
            ) : (
              <>
                {pathText(item.path)}
                {'  '}
                <Backticks text={clean(item.text)} />
              </>
            )}
          </li>
        ))}
      </ul>
      {rest > 0 ? (
        <button type="button" class="more" onClick={() => setShown(shown + 200)}>
          Show {rest} more
        </button>
      ) : null}
    </section>
  );
}

/** What happened since then that is no file: commands, and the rest. */
function effects(plan: RewindDocument): [commands: string[], rest: string[]] {
  const isCommand = ({ kind }: { kind: string }) => kind === 'command';
  const commands = plan.ledger.filter(isCommand).map(({ what }) => what);
  const rest = plan.ledger
    .filter((item) => !isCommand(item))
    .map(({ kind, what, remedy }) => `${kind === 'running' ? 'still running' : kind}: ${what}${remedy ? `  \`${remedy}\`` : ''}`);
  return [counted(commands), counted(rest)];
}

/** What does not go back. Where only the conversation does, that nothing else does is what was asked for, and no warning; a plan for
 * some files says nothing of commands. */
export function Stays({ plan, isPart }: { plan: RewindDocument; isPart: boolean }) {
  const jobs = (theView()?.jobs ?? []).filter((job) => job.ended === null).map((job) => `${job.job}  ${job.command}`);
  const [commands, rest] = effects(plan);
  if (plan.scope === 'conversation') return <Listed title="Nothing that these did is undone:" items={[...commands, ...rest]} />;
  return (
    <div class="stays">
      {isPart ? null : (
        <>
          <Listed title="Undoes what these did to the files:" items={counted(plan.undoes)} />
          <Listed title="Nothing that these commands did is undone:" items={commands} />
          <Listed title="Not undone:" items={rest} />
        </>
      )}
      <NotRestored left={leftBehind(plan)} stay="do not go back" />
      <Listed
        title={`Not captured at that point (${plan.gaps_total}):`}
        items={plan.gaps}
        total={plan.gaps_total}
      />
      <Listed title="Still open in a program:" items={plan.still_open.map((path) => ({ path, text: '' }))} />
      <Listed title="Background jobs, stopped if they were started since then:" items={jobs} />
    </div>
  );
}

/** What becomes of what was said. */
export function Leaves({ plan }: { plan: RewindDocument }) {
  const planned = plan.conversation;
  if (!planned) return null;
  return (
    <>
      {planned.leaves.length > 1 || planned.returns.length > 0 ? (
        <Listed title="Removed from the conversation:" items={planned.leaves.map((prompt) => prompt.text)} />
      ) : null}
      <Listed title="Brought back into the conversation:" items={planned.returns.map((prompt) => prompt.text)} />
      <Listed title="Removed from the conversation earlier; their files go back too:" items={(planned.left_before ?? []).map((prompt) => prompt.text)} />
      {planned.went_on ? <p class="warning">The conversation has gone on since then: it stays where it is</p> : null}
      {planned.removed ? <p class="warning">These prompts were removed for good: the conversation stays where it is</p> : null}
    </>
  );
}

/** The letters of `retake diff`, and what they mean here. */
const LETTERS: Record<string, string> = { restore: 'M', delete: 'D', recreate: 'A', mode: 'M' };

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
          Show {files.length - shown} more files
        </button>
      ) : null}
      {plan.files.some((file) => file.certainty === 'presumed') ? (
        <p class="dim presumed">What changed while a command ran is taken to be that command’s doing.</p>
      ) : null}
    </section>
  );
}

function PlanFile(props: { file: PlannedFile; diff: FileDiff | undefined; isOpen: boolean; only: ((path: Bytes) => void) | null }) {
  const { file, diff, only } = props;
  const letter = LETTERS[file.action ?? ''] ?? '?';
  const word = `will be ${actionDone(file.action)}`;
  const remark = file.certainty === 'certain' || file.certainty === 'presumed' ? word : [word, file.certainty].filter(Boolean).join(', ');
  const box: FileDiff = diff ?? { path: file.path, added: 0, removed: 0, hunks: [], left_out: 0 };
  return (
    <div class="with-button">
      <FileBox file={box} letter={letter} letterName={word} remark={remark} isOpen={props.isOpen} />
      {only ? (
        <button type="button" class="quiet only-this" aria-label={`Only this file: ${pathText(file.path)}`} onClick={() => only(file.path)}>
          Only this file
        </button>
      ) : null}
    </div>
  );
}
