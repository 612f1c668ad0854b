import { Component, type ComponentChildren, type FunctionComponent, h } from "preact"

/** Returns a component that renders again only if one of its props has changed. */
export function memo<P extends object>(render: (props: P) => ComponentChildren): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const before = this.props as Record<string, unknown>
      const after = next as Record<string, unknown>
      return Object.keys({ ...before, ...after }).some((key) => before[key] !== after[key])
    }
    override render() {
      return h(render as FunctionComponent<P>, this.props)
    }
  }
  return Memo as unknown as FunctionComponent<P>
}
