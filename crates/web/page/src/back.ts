// The way back of a phone: what covers the conversation is closed by it, and the session stays.

import { effect } from '@preact/signals';

import { applying, panel, sidebarOpen } from './store';

const narrow = matchMedia('(max-width: 52rem)');
const isMarked = () => (history.state as { covers?: boolean } | null)?.covers === true;

/** While something covers the conversation there is one more place in the history to come back from. */
export function listenToBack(): void {
  effect(() => {
    const isCovered = panel.value !== null || sidebarOpen.value;
    if (isCovered && narrow.matches && !isMarked()) history.pushState({ covers: true }, '', location.href);
    // Closed in another way; whoever went to another session meanwhile is not led back.
    else if (!isCovered && isMarked()) history.back();
  });
  addEventListener('popstate', () => {
    if (isMarked()) return;
    if (panel.value !== null && !applying.value && narrow.matches) panel.value = null;
    else if (narrow.matches) sidebarOpen.value = false;
  });
}
