// A component that is drawn again only if one of its properties is another.

import { type ComponentChild, type FunctionComponent, h } from 'preact';
import { Component } from 'preact';

export function memo<P extends object>(draw: (props: P) => ComponentChild): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const [old, now] = [this.props as Record<string, unknown>, next as Record<string, unknown>];
      for (const key in now) if (now[key] !== old[key]) return true;
      for (const key in old) if (!(key in now)) return true;
      return false;
    }
    override render() {
      return h(draw as FunctionComponent<P>, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
