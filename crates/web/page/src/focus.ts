// Where the focus goes.

/** For `ref`: focuses an element when it comes. One function, so that it is not called again for every drawing. */
export function focusOnce(element: HTMLElement | null): void {
  element?.focus();
}

/** Remembers where the focus is. Returns whether the user has left it there since: in the same element, or in the same panel. */
export function rememberFocus(): () => boolean {
  const place = (element: Element | null) => element?.closest('.side-body') ?? element;
  const from = place(document.activeElement);
  return () => {
    const now = document.activeElement;
    return now === null || now === document.body || place(now) === from;
  };
}

/** Whether what is typed there is text. */
export function isText(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
