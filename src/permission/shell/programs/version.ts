import type { ReadOnly } from "../program.ts"

/** A program that only reads where it does nothing but print its version. */
export function version(options: string): ReadOnly {
  return { options, operands: "text", maxOperands: 0, requires: options.split(" ") }
}
