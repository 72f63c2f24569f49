// Where the focus goes.

/** For `ref`: focuses an element when it comes. One function, so that it is not called again for every drawing. */
export function focusOnce(element: HTMLElement | null): void {
  element?.focus();
}
