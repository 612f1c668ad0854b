/** How many lines a unified diff adds and takes away: `+3 −1`. */
export function diffCount(diff: string): string {
  const lines = diff.split("\n")
  const count = (sign: string) =>
    lines.filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3))).length
  return `+${count("+")} −${count("-")}`
}
