/** How old text was found, strictest first: the order in which the ways are tried. */
export type Strategy =
  | "exact"
  | "line-endings"
  | "trailing-whitespace"
  | "indentation"
  | "line-trimmed"
  | "whitespace"
  | "look-alikes"
  | "look-alike-lines"
  | "block-anchors"
  | "left-out-lines"

/** True if every character but line endings is as it was given. */
export function isLiteral(strategy: Strategy): boolean {
  return strategy === "exact" || strategy === "line-endings"
}

/** True if the first character of every line is the file's. */
export function keepsIndentation(strategy: Strategy): boolean {
  return isLiteral(strategy) || strategy === "trailing-whitespace" || strategy === "look-alikes"
}
