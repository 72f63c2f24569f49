// The browser's back button, on a phone above all: it closes what covers the conversation and leaves the session open.

import { effect } from '@preact/signals';

import { panel, sidebarOpen } from './store';

/** Whether this place in the history is that of something that covers the conversation. */
export function isMarked(): boolean {
  return (history.state as { covers?: boolean } | null)?.covers === true;
}

/** While something covers the conversation there is one more place in the history to come back from. */
export function listenToBack(): void {
  const narrow = matchMedia('(max-width: 52rem)');
  effect(() => {
    const isCovered = panel.value !== null || sidebarOpen.value;
    if (isCovered && narrow.matches && !isMarked()) history.pushState({ covers: true }, '', location.href);
    // Closed in another way; whoever goes to another session has taken the mark away.
    else if (!isCovered && isMarked()) history.back();
  });
  addEventListener('popstate', () => {
    if (isMarked()) return;
    if (panel.value !== null && narrow.matches) panel.value = null;
    else if (narrow.matches) sidebarOpen.value = false;
  });
}
