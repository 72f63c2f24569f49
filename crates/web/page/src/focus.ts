// Where the focus goes.

/** For `ref`: focuses an element when it comes. One function, so that it is not called again for every drawing. */
export function focusOnce(element: HTMLElement | null): void {
  element?.focus();
}

/** Whether what is typed there is text. */
export function isText(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
