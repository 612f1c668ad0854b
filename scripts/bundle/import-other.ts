import type { Plugin } from "rolldown"

/** Calls what `bin/load.cjs` hands in for `import`, where it imports what is not in the bundle. */
export const importOther: Plugin = {
  name: "import-other",
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== "chunk" || !file.code.includes("import(")) continue
      if (file.name === "html-worker")
        throw new Error(`${file.fileName} is loaded by Node, without importOther`)
      const starts = importCalls(this.parse(file.code)).toSorted((a, b) => b - a)
      for (const start of starts)
        file.code = `${file.code.slice(0, start)}importOther${file.code.slice(start + "import".length)}`
    }
  },
}

/** Where calls of `import` begin, anywhere below a node. */
function importCalls(node: object): number[] {
  const below = Object.values(node).filter((value) => typeof value === "object" && value !== null)
  const own =
    "type" in node && node.type === "ImportExpression" && "start" in node ? [Number(node.start)] : []
  return [...own, ...below.flatMap(importCalls)]
}
