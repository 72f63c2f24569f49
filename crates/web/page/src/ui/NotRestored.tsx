// The paths that changed and are not restored, each with the reason: the same list in a plan and after it was applied.

import { count, type Left } from '../text/format';
import { Backticks } from './Backticks';

export function NotRestored({ left, stay }: { left: Left[]; stay: 'do not go back' | 'did not go back' }) {
  if (left.length === 0) return null;
  return (
    <>
      <p>
        {count(left.length, 'path', 'paths')} changed and {stay === 'do not go back' && left.length === 1 ? 'does not go back' : stay}:
      </p>
      <ul class="left-list" aria-label={`Paths that ${stay}`}>
        {left.map(({ path, why }) => (
          <li key={path}>
            <span class="path">{path}</span> <Backticks text={why} />
          </li>
        ))}
      </ul>
    </>
  );
}
