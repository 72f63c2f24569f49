// What the page shows of a session, folded from its events: the same fold as `View::apply` of `retake-agent`, and the only way to change it.
//
// Arrays are changed in place, since a long conversation must not be copied for a word; whoever draws is told by a counter.

import type { Event, View } from './contract';

/** The end of a running call's output that is kept, in bytes. */
const SHOWN_OUTPUT = 64 << 10;

const encoder = new TextEncoder();

/** Takes an event in. One that is in it already changes nothing. Returns whether it was taken. */
export function apply(view: View, event: Event): boolean {
  if (event.seq <= view.seq) return false;
  view.seq = event.seq;
  switch (event.type) {
    case 'appended': {
      const entry = event.entry;
      view.coming = { text: '', thinking: '' };
      if (entry.type === 'tool_result') view.calls = view.calls.filter((one) => one.call !== entry.call);
      view.entries.push(entry);
      break;
    }
    case 'head_moved': {
      const kept = event.keep === null ? 0 : view.entries.findIndex((entry) => entry.id === event.keep) + 1;
      view.entries.length = kept;
      for (const entry of event.added) view.entries.push(entry);
      view.coming = { text: '', thinking: '' };
      view.calls = [];
      view.questions = [];
      break;
    }
    case 'draft_changed':
      view.draft = event.parts;
      break;
    case 'delta':
      view.coming = { ...view.coming, text: view.coming.text + event.text };
      break;
    case 'thinking':
      view.coming = { ...view.coming, thinking: view.coming.thinking + event.text };
      break;
    case 'call_started':
      view.calls = [...view.calls, { call: event.call, title: event.title, output: '' }];
      break;
    case 'call_output': {
      // Only the first of several with the same id: an id is unique within its reply only.
      const at = view.calls.findIndex((one) => one.call === event.call);
      const running = view.calls[at];
      if (running) {
        view.calls = view.calls.slice();
        view.calls[at] = { ...running, output: end(running.output + event.text) };
      }
      break;
    }
    case 'permission_asked':
      view.questions = [...view.questions, event.question];
      break;
    case 'permission_settled':
      view.questions = view.questions.filter((question) => question.call !== event.call);
      break;
    case 'state_changed':
      view.state = event.state;
      break;
    case 'retrying':
      view.coming = { text: '', thinking: '' };
      break;
    case 'summarising':
      view.summarising = event.active;
      break;
    case 'held':
      view.held = event.count;
      break;
    case 'jobs_changed':
      view.jobs = event.jobs;
      break;
    case 'baseline':
      view.baseline = event.baseline;
      break;
    case 'snapshot':
      if (event.moment === 'baseline') view.baseline = null;
      break;
    case 'model_changed':
      view.model = event.model;
      view.window = event.window;
      break;
    case 'turn_ended':
    case 'call_began':
    case 'returned':
    case 'warning':
      break;
  }
  return true;
}

/** The entry that the next one continues. */
export function head(view: View): string | null {
  return view.entries.at(-1)?.id ?? null;
}

/** The end of `text` that is shown, never a part of a character. */
function end(text: string): string {
  // A UTF-16 unit is at most three bytes of UTF-8.
  if (text.length * 3 <= SHOWN_OUTPUT) return text;
  const bytes = encoder.encode(text);
  if (bytes.length <= SHOWN_OUTPUT) return text;
  let from = bytes.length - SHOWN_OUTPUT;
  while (from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
  return new TextDecoder().decode(bytes.subarray(from));
}
