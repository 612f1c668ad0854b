import type { ReadOnly } from "../program.ts"

/** Returns the read-only entry of a program that only reads if one of these options makes it print its version. */
export function version(options: string): ReadOnly {
  return { options, operands: "text", maxOperands: 0, requires: options.split(" ") }
}
