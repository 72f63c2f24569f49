// Light or dark: as the system says, until somebody says otherwise.

import { signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';
const KEY = 'retake-theme';

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : 'auto';
  } catch {
    return 'auto';
  }
}

export const theme = signal<Theme>(stored());

theme.subscribe((value) => {
  if (value === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = value;
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // It holds for this page only.
  }
});

export function nextTheme(): void {
  const order: Theme[] = ['auto', 'light', 'dark'];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length] ?? 'auto';
}
