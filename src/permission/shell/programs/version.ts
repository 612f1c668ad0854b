import type { ReadOnly } from "../program.ts"

/** Returns the entry of a program that is read-only only with one of these options, which print its version. */
export function version(options: string): ReadOnly {
  return { options, operands: "text", maxOperands: 0, requires: options.split(" ") }
}
