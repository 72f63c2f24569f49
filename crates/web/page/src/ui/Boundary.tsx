// Keeps what cannot be drawn from taking the rest of the page with it.

import { Component, type ComponentChildren } from 'preact';

interface Props {
  /** What is drawn: when it is another, drawing is tried again. */
  of: unknown;
  /** What is shown instead, as text. */
  plain: () => string;
  children: ComponentChildren;
}

export class Boundary extends Component<Props, { failed: unknown }> {
  override state: { failed: unknown } = { failed: null };

  override componentDidCatch(error: unknown): void {
    console.warn('this cannot be drawn:', error);
    this.setState({ failed: { of: this.props.of } });
  }

  override render({ of, plain, children }: Props) {
    const failed = this.state.failed as { of: unknown } | null;
    if (failed === null || failed.of !== of) return children;
    return (
      <>
        <p class="warning">! This cannot be drawn; it is shown as plain text</p>
        <pre class="out wrap" tabIndex={0}>
          {text(plain)}
        </pre>
      </>
    );
  }
}

function text(plain: () => string): string {
  try {
    return plain();
  } catch {
    return '(it has no text)';
  }
}
