// All keys and commands.

import { ALL } from '../slash';

const KEYS: [string, [string, string][]][] = [
  [
    'Going back',
    [
      ['Esc Esc, t', 'the timeline: every prompt, left branches too; a click goes to a prompt, Enter opens its menu'],
      ['Alt+↑, Alt+↓ · k, j', 'the prompt before, the next one'],
      ['r', 'the menu of the prompt: rewind, fork, summarise, label, diff, compare'],
      ['1 2 3', 'in the menu: code and conversation, conversation only, code only'],
      ['d', 'what the turn of the prompt changed'],
      ['u, Shift+U', 'what undo of the last turn or rewind would do, and redo; Enter does it'],
    ],
  ],
  [
    'Saying something',
    [
      ['i, Enter', 'to the composer'],
      ['Enter', 'send; while a turn runs it is queued'],
      ['Shift+Enter, Alt+Enter', 'a new line (so does \\ before Enter)'],
      ['@', 'mention a file: its content goes along'],
      ['↑, ↓', 'what was said before'],
      ['paste, drop, attach', 'images and texts; a long one becomes a block'],
    ],
  ],
  [
    'Reading',
    [
      ['/', 'find in the conversation, also what is far away; Enter for the one before'],
      ['g, Shift+G', 'to the beginning, to the newest'],
      ['s', 'sessions'],
      ['o', 'unfold or fold everything on the screen'],
      ['?', 'this page; Esc closes what is open'],
    ],
  ],
  [
    'Running',
    [
      ['Esc', 'stop the turn; everything so far is kept, and can be taken back'],
      ['y, a, n, w', 'go to an answer of a question: yes, always, no, no and why; Enter gives it. In the composer they are text'],
    ],
  ],
];

export function Help() {
  return (
    <div class="help">
      <p>
        Single letters are keys while nothing is being typed: click on the conversation, or press <kbd>Alt+↑</kbd>, to leave the composer; <kbd>i</kbd> goes back to it.
      </p>
      {KEYS.map(([title, keys]) => (
        <section key={title}>
          <h3>{title}</h3>
          <dl>
            {keys.map(([key, about]) => (
              <div key={key + about}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{about}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <section>
        <h3>Commands</h3>
        <dl>
          {ALL.map((told) => (
            <div key={told.name}>
              <dt>
                <kbd>
                  /{told.name} {told.takes}
                </kbd>
              </dt>
              <dd>{told.about}</dd>
            </div>
          ))}
        </dl>
      </section>
    </div>
  );
}
