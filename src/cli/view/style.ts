import { styleText } from "node:util"

type Name = Parameters<typeof styleText>[0]

/** Styles for stderr. They have no effect without a terminal or with `NO_COLOR`. */
export const style = {
  bold: paint("bold"),
  dim: paint("dim"),
  red: paint("red"),
  green: paint("green"),
  yellow: paint("yellow"),
  cyan: paint("cyan"),
}

function paint(name: Name): (text: string) => string {
  return (text) => styleText(name, text, { stream: process.stderr, validateStream: true })
}
