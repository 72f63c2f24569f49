// What is told in passing, between the conversation and the composer: the newest, and how many there are behind it.

import { dismiss, notices, turnOver } from '../notices';
import { applying } from '../store';
import { Ticked } from './Ticked';

export function Notices() {
  const notice = notices.value.at(-1);
  const more = notices.value.length - 1;
  return (
    <div class="notices" role="log" aria-live="polite" aria-label="Notices">
      {notice ? (
        <div key={notice.id} class={`notice n-${notice.tone}`} role={notice.tone === 'bad' ? 'alert' : undefined}>
          <span>
            <Ticked text={notice.text} />
          </span>
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
          {more > 0 ? (
            <button type="button" class="quiet dim" aria-label={`${more} more: show the one before`} onClick={turnOver}>
              +{more}
            </button>
          ) : null}
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(notice.id)}>
            ×
          </button>
        </div>
      ) : null}
    </div>
  );
}
