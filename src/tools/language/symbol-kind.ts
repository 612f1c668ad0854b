/** The protocol's number of a kind of symbol as a word. */
export function symbolKind(kind: number): string {
  return names[kind - 1] ?? "symbol"
}

/** In the protocol's order, from 1. */
const names =
  "file module namespace package class method property field constructor enum interface function variable constant string number boolean array object key null enum-member struct event operator type-parameter".split(
    " ",
  )
