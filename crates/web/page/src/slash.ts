// Commands that are typed: their names, what they are for, and what they do. The same as the terminal's.

import { fork, fresh, interrupt } from './actions';
import { lastPrompt, openPlan, redo, setLabel, showTurnDiff, summarise, undo } from './changes';
import type { Change, EntryId, Extent, OnConflict } from './contract';
import { takeDraft } from './drafts';
import { openMenu, searchSessions } from './keys';
import { say } from './notices';
import { quietly, refused, send } from './commands';
import { finding, panel, theFacts, theView } from './store';
import { head } from './view';

export interface Told {
  name: string;
  aliases: string[];
  takes: string;
  about: string;
  run(argument: string): void | Promise<void>;
}

const told = (name: string, aliases: string[], takes: string, about: string, run: Told['run']): Told => ({ name, aliases, takes, about, run });
const CONFLICTS = '[keep|overwrite|merge]';

/** All of them, in the order of the help. */
export const ALL: Told[] = [
  told('rewind', ['rollback'], '[NUMBER]', 'go back to a prompt: files, conversation or both', (number) => {
    if (!number) panel.value = { kind: 'timeline' };
    else at('rewind', number, openMenu);
  }),
  told('undo', [], CONFLICTS, 'take back the last turn or rewind', (argument) => change({ do: 'undo' }, argument, 'undo')),
  told('redo', [], CONFLICTS, 'repeat what was undone', (argument) => change({ do: 'redo' }, argument, 'redo')),
  told('diff', [], '[NUMBER]', 'what the last turn changed, or another one', (number) => {
    if (number) return at('diff', number, (entry) => void showTurnDiff(entry));
    const prompt = lastPrompt();
    return prompt ? showTurnDiff(prompt) : nothingSaid();
  }),
  told('fork', [], '[NUMBER]', 'go on from here, or from before a prompt, in a session of its own', (number) => {
    if (number) return at('fork', number, (entry) => void fork(entry));
    const view = theView();
    const entry = view && head(view);
    return entry ? fork(entry) : nothingSaid();
  }),
  told('label', [], '[NUMBER] TEXT', 'name the point before a prompt: the last, if none is given', async (argument) => {
    const [, number = '', text = ''] = /^(?:#?(\d+)\s+)?([\s\S]*)$/.exec(argument) ?? [];
    const prompt = number ? numbered(number) : lastPrompt();
    if (!text) return say('plain', '/label TEXT names the point before the last prompt, /label 2 TEXT the one before prompt 2');
    if (!prompt) return number ? noPrompt(number) : nothingSaid();
    const refusal = await setLabel(prompt, text);
    if (refusal) refused(refusal);
  }),
  told('checkpoints', [], '', 'the checkpoints of this directory', () => {
    panel.value = { kind: 'checkpoints' };
  }),
  told('compact', [], '[FOCUS]', 'have the whole conversation summarised', (text) => summarise({ part: 'all' }, text || null)),
  told('summarize', ['summarise'], '[from|up to NUMBER]', 'have a part of it summarised', summarisePart),
  told('clear', [], '', 'the model sees nothing of what was said so far', async () => void (await quietly({ type: 'clear' }))),
  told('new', [], '', 'begin a new session', () => fresh()),
  told('sessions', ['resume'], '', 'other sessions of this directory', searchSessions),
  told('model', [], '[PROVIDER/NAME]', 'which model is asked, or ask another', async (model) => {
    const view = theView();
    if (model) return void (await quietly({ type: 'model', model }));
    const window = view?.window ? `, ${view.window} tokens of context` : '';
    say('plain', `${view?.model}${window}. \`/model PROVIDER/NAME\` asks another`);
  }),
  told('find', [], '', 'look for words in the conversation', () => {
    finding.value = true;
  }),
  told('export', [], '', 'save the conversation as JSON lines', exportLines),
  told('jobs', [], '[end JOB]', 'background jobs', jobs),
  told('draft', [], '', 'load what waits to be said', takeDraft),
  told('stop', [], '', 'stop the turn', interrupt),
  told('help', [], '', 'all keys and commands', () => {
    panel.value = { kind: 'help' };
  }),
];

/** The prompt with a number, as it is written before it in the conversation. */
function numbered(number: string): EntryId | undefined {
  return [...theFacts().numbers].find(([, one]) => one === Number(number.replace('#', '')))?.[0];
}

function noPrompt(number: string): void {
  const count = theFacts().numbers.size;
  say('warning', `There is no prompt ${number}. ${count === 0 ? 'Nothing has been said yet' : `The last one is ${count}`}`);
}

/** Does something at the prompt whose number was typed. */
function at(name: string, number: string, act: (entry: EntryId) => void): void {
  if (!/^#?\d+$/.test(number)) return say('warning', `/${name} takes the number of a prompt, such as /${name} 2. To send this as a prompt, begin it with a space`);
  const entry = numbered(number);
  if (entry) act(entry);
  else noPrompt(number);
}

function nothingSaid(): void {
  say('plain', 'Nothing has been said in this session yet');
}

/** What a line is: a command and what follows it, something that only looks like one, or null for a prompt. */
export type Meaning = { told: Told; argument: string } | { unknown: string } | { tooMuch: string } | null;

/** Reads a line as the terminal does. A path such as `/etc/hosts is wrong` is no command, and nothing is behind a blank. */
export function read(line: string): Meaning {
  const text = line.trimEnd();
  if (!text.startsWith('/') && !text.startsWith(':')) return null;
  const [, name = '', blank = '', argument = ''] = /^.(\S*)(\s?)([\s\S]*)$/.exec(text) ?? [];
  const found = ALL.find((one) => one.name === name || one.aliases.includes(name));
  if (found && !found.takes && argument.trim()) return { tooMuch: found.name };
  if (found) return { told: found, argument: argument.trim() };
  return /^[a-z-]+$/.test(name) && !blank && !argument ? { unknown: name } : null;
}

/** The commands that what was typed could become. */
export function matching(typed: string): Told[] {
  return ALL.filter((one) => [one.name, ...one.aliases].some((name) => name.startsWith(typed)));
}

async function change(goal: { do: 'undo' } | { do: 'redo' }, argument: string, verb: string): Promise<void> {
  if (!argument) return verb === 'undo' ? undo() : redo();
  if (!['keep', 'overwrite', 'merge'].includes(argument)) {
    return say('plain', `/${verb}, or /${verb} with keep, overwrite or merge: what to do with files that others changed`);
  }
  const wanted: Change = { ...goal, on_conflict: argument as OnConflict };
  if (verb === 'undo') openPlan(wanted, 'Undo', 'the last turn or rewind');
  else openPlan(wanted, 'Redo', 'what was undone last');
}

async function summarisePart(argument: string): Promise<void> {
  const found = /^(from|up[ -]?to|to)\s+#?(\d+)$/.exec(argument);
  const entry = found && numbered(found[2] ?? '');
  if (!argument) {
    panel.value = { kind: 'timeline' };
    return say('plain', 'Choose a prompt, then “Summarise from here” or “up to here”');
  }
  if (!found || !entry) return say('plain', '/summarize from NUMBER, or up to NUMBER: the numbers are those of the prompts');
  const extent: Extent = found[1] === 'from' ? { part: 'from', entry } : { part: 'up_to', entry };
  await summarise(extent);
}

function exportLines(): void {
  const view = theView();
  if (!view) return;
  const text = view.entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  const address = URL.createObjectURL(new Blob([text], { type: 'application/jsonl' }));
  const anchor = document.createElement('a');
  anchor.href = address;
  anchor.download = `retake-${view.session.slice(0, 8)}.jsonl`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function jobs(argument: string): Promise<void> {
  const job = /^end\s+(\S+)$/.exec(argument)?.[1];
  if (job) {
    const answer = await send({ type: 'end_job', job });
    if (answer.refused) refused(answer.refused);
    return;
  }
  const all = theView()?.jobs ?? [];
  if (all.length === 0) return say('plain', 'No background jobs');
  const lines = all.map((one) => `${one.job} (${one.ended === null ? 'runs' : `ended: ${one.ended}`})  ${one.command}`);
  const running = all.filter((one) => one.ended === null);
  say(
    'plain',
    lines.join('\n'),
    running.slice(0, 3).map((one) => ({ text: `End ${one.job}`, run: () => void quietly({ type: 'end_job', job: one.job }) })),
  );
}
