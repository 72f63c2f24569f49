// Short forms of the notes that are written for the model.

import type { ToolOutcome } from '../contract';
import { count } from './format';

/** So many files are named; the rest is counted. */
const NAMED = 3;

/** A note on one line: which files the model has to look at again, or how it begins. */
export function noteLine(about: string[], text: string): string {
  if (about.length === 0) return `Note to the model: ${text.trim().split('\n')[0] ?? ''}`;
  const names = about.slice(0, NAMED).join(', ') + (about.length > NAMED ? ` and ${about.length - NAMED} more` : '');
  return `${count(about.length, 'file is', 'files are')} not as the model last saw ${about.length === 1 ? 'it' : 'them'}: ${names}`;
}

const DENIED = 'The user did not allow this call.';
const WHY = 'They say: ';
const STOPPED = 'The user stopped this';

/** What the user did to a call, if its result tells the model nothing else. */
export function refusalOf(outcome: ToolOutcome, text: string): string | null {
  if (outcome === 'denied' && text.startsWith(DENIED)) {
    const at = text.indexOf(WHY);
    return at < 0 ? 'You said no' : `You said no: ${text.slice(at + WHY.length).trim()}`;
  }
  if (outcome === 'interrupted' && text.startsWith(STOPPED) && !text.includes('\n')) {
    return text.includes('before it began') ? 'not run' : 'stopped';
  }
  return null;
}
