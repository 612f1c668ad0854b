import type { Plugin } from "rolldown"

/**
 * Node's own modules by the names that are used, and no others. An `import` of one first makes a copy of all its
 * exports, which loads what hangs on them (`node:fs` its streams): a third of the start of a command without need.
 */
export const builtins: Plugin = {
  name: "builtins",
  resolveId(id, importer, { kind }) {
    if (!id.startsWith("node:")) return undefined
    // A lazy import takes all there is of a module, and would make the others take it too.
    if (kind === "dynamic-import") return { id, external: true }
    // What the bundler adds comes before every module, and so before ours.
    if (importer?.startsWith("\0rolldown")) return { id, external: true }
    // One module for each package that imports it: what one of them uses the others need not load.
    const user = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(importer ?? "")?.[1] ?? "tackle"
    return { id: `${builtin}${id}?${user}`, moduleSideEffects: false }
  },
  load(id) {
    if (!id.startsWith(builtin)) return undefined
    const path = id.slice(builtin.length, id.indexOf("?"))
    const names = Object.keys(process.getBuiltinModule(path) ?? {}).filter(
      (name) => /^[A-Za-z]\w*$/.test(name) && name !== "default",
    )
    return loadedByFirstCall.has(path) ? forwarders(path, names) : members(path, names)
  },
}

const builtin = "\0builtin:"

function members(path: string, names: readonly string[]): string {
  const member = (name: string) => `export const ${name} = /* @__PURE__ */ (() => builtin.${name})()`
  return [
    `const builtin = process.getBuiltinModule("${path}")`,
    "export default builtin",
    ...names.map(member),
  ].join("\n")
}

/** Modules that take long to load, of which only functions are used and none of them at the start of a run. */
const loadedByFirstCall: ReadonlySet<string> = new Set(["node:crypto"])

function forwarders(path: string, names: readonly string[]): string {
  const forward = (name: string) => `export const ${name} = (...args) => builtin().${name}(...args)`
  return [`const builtin = () => process.getBuiltinModule("${path}")`, ...names.map(forward)].join("\n")
}
