// Totals over the conversation, updated entry by entry: a frame must not read the whole conversation.

import type { Entry, EntryId, Todo, Usage, View } from './contract';

/** The entries of one type. */
export type EntryOf<T extends Entry['type']> = Extract<Entry, { type: T }>;

/** What is added up over the conversation. */
export interface Totals {
  cost: number | null;
  output: number;
  /** Tokens written since the last prompt. */
  turn: number;
  /** Tokens that the model was sent last, and answered; null if that is not known now. */
  context: number | null;
  todos: Todo[];
  /** The number of each retained prompt. */
  numbers: Map<EntryId, number>;
  /** Where each entry is. */
  at: Map<EntryId, number>;
  /** Everything before is cleared. */
  cleared: number;
  /** What summaries stand for, first and last. */
  summarised: [number, number][];
  title: string;
}

function empty(): Totals {
  return {
    cost: null,
    output: 0,
    turn: 0,
    context: null,
    todos: [],
    numbers: new Map(),
    at: new Map(),
    cleared: 0,
    summarised: [],
    title: '',
  };
}

/** Of everything in a view. */
export function totalsOf(view: View): Totals {
  const facts = empty();
  view.entries.forEach((entry, at) => takeEntry(facts, entry, at));
  return facts;
}

/** Takes one more entry in. */
export function takeEntry(facts: Totals, entry: Entry, at: number): void {
  facts.at.set(entry.id, at);
  switch (entry.type) {
    case 'prompt':
      facts.turn = 0;
      facts.numbers.set(entry.id, facts.numbers.size + 1);
      if (!facts.title) facts.title = firstLine(entry.parts.map((part) => (part.type === 'text' ? part.text : '')).join(' '));
      break;
    case 'reply': {
      add(facts, entry.usage);
      facts.turn += entry.usage.output;
      const read = entry.usage.input + entry.usage.output;
      if (read > 0) facts.context = read;
      break;
    }
    case 'summary': {
      if (entry.usage) add(facts, entry.usage);
      facts.context = null;
      const [from, to] = [facts.at.get(entry.from), facts.at.get(entry.to)];
      // A model that goes back on its own keeps the prompts.
      if (entry.by?.why !== 'model' && from !== undefined && to !== undefined) facts.summarised.push([from, to]);
      break;
    }
    case 'cleared':
      facts.context = null;
      facts.cleared = at;
      break;
    case 'ended':
      // The next turn is told to run before its prompt is.
      facts.turn = 0;
      break;
    case 'tool_result':
      if (entry.todos) facts.todos = entry.todos;
      break;
    default:
      break;
  }
}

/** Whether the model no longer sees the entry at `at`. */
export function isUnseen(facts: Totals, at: number): boolean {
  return at < facts.cleared || facts.summarised.some(([from, to]) => from <= at && at <= to);
}

function add(facts: Totals, usage: Usage): void {
  facts.output += usage.output;
  if (typeof usage.cost === 'number') facts.cost = (facts.cost ?? 0) + usage.cost;
}

export function firstLine(text: string): string {
  return (
    text
      .split('\n')
      .find((line) => line.trim())
      ?.trim() ?? ''
  );
}
