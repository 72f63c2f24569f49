// What is told in passing, between the conversation and the composer: the newest, and below it what can be taken back, always.

import { dismiss, isBar, type Notice, notices, turnOver } from '../notices';
import { applying } from '../store';
import { NotRestored } from './NotRestored';
import { Backticks } from './Backticks';

export function Notices() {
  const others = notices.value.filter((one) => !isBar(one));
  const [newest, bar] = [others.at(-1), notices.value.findLast(isBar)];
  return (
    <div class="notices" role="log" aria-live="polite" aria-label="Notices">
      {newest ? <Told key={newest.id} notice={newest} older={others.length - 1} /> : null}
      {bar ? <Told key={bar.id} notice={bar} older={0} /> : null}
    </div>
  );
}

function Told({ notice, older }: { notice: Notice; older: number }) {
  return (
    <div class={`notice n-${notice.tone}`} role={notice.tone === 'bad' ? 'alert' : undefined}>
      <div class="words" tabIndex={notice.left.length > 0 ? 0 : undefined}>
        <Backticks text={notice.text} />
        <NotRestored left={notice.left} stay="did not go back" />
      </div>
      {notice.actions.map((action, at) => (
        <button
          key={action.text}
          type="button"
          class={at === 0 ? 'primary' : ''}
          disabled={applying.value}
          onClick={() => {
            dismiss(notice.id);
            action.run();
          }}
        >
          {action.text}
        </button>
      ))}
      {older > 0 ? (
        <button type="button" class="quiet dim" aria-label={`Show the notice before, ${older} older`} onClick={turnOver}>
          {older} older
        </button>
      ) : null}
      <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(notice.id)}>
        ×
      </button>
    </div>
  );
}
