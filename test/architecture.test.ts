import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { expect, test } from "vitest"

const root = resolve(import.meta.dirname, "../src")

/** A folder imports only itself and folders of a lower rank. */
const ranks: readonly string[][] = [
  ["util"],
  ["schema"],
  ["event", "sandbox"],
  ["formatter", "lsp", "permission", "store"],
  ["files"],
  ["tool", "skill"],
  ["tools", "external-tool", "mcp/client", "synthetic", "plugin"],
  ["model"],
  ["agent", "registry"],
  ["call"],
  ["session"],
  ["config"],
  ["engine"],
  ["testing"],
  ["client", "gateway", "mcp/server", "server"],
  ["view", "scale"],
  ["tui"],
  ["cli", "index.ts"],
]

const rankOf = (name: string): number | undefined => {
  const rank = ranks.findIndex((names) => names.includes(name))
  return rank < 0 ? undefined : rank
}

/** Libraries that only these files and folders may import. */
const fences: Record<string, readonly string[]> = {
  "@ai-sdk/": ["model/", "synthetic/"],
  ai: ["call/ai-tools.ts"],
  "node:sqlite": ["store/"],
  pg: ["store/"],
  "pg-boss": ["scale/"],
  aws4fetch: ["store/"],
  "web-tree-sitter": ["permission/shell/parse.ts"],
  "vscode-jsonrpc/": ["lsp/connection.ts"],
  "@modelcontextprotocol/": ["mcp/"],
  hono: ["server/"],
  "hono/": ["server/"],
  "@hono/": ["server/"],
  "eventsource-parser": ["client/"],
  jiti: ["util/load-module.ts"],
  sharp: ["files/read-media.ts"],
  yaml: ["util/front-matter.ts", "config/markdown.ts"],
  commander: ["cli/"],
  "@clack/prompts": ["cli/"],
  "@earendil-works/pi-tui": ["cli/", "tui/"],
  "highlight.js/": ["tui/"],
}

interface Import {
  from: string
  specifier: string
}

function sources(): string[] {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true })
  return entries.filter((e) => e.isFile() && e.name.endsWith(".ts")).map((e) => join(e.parentPath, e.name))
}

function imports(file: string): Import[] {
  const text = readFileSync(file, "utf8")
  const found = text.matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)"([^"]+)"/gm)
  return [...found].map((match) => ({ from: relative(root, file), specifier: match[1] ?? "" }))
}

/** Returns the folder of a file. `mcp/` has two. */
function place(file: string): string {
  const [folder = file, below = ""] = file.split("/")
  return folder === "mcp" ? `${folder}/${below}` : folder
}

const all = sources().flatMap(imports)

test("finds imports", () => {
  expect(all.length).toBeGreaterThan(50)
})

test("ranks every folder of src", () => {
  const places = new Set(sources().map((file) => place(relative(root, file))))
  expect([...places].filter((name) => rankOf(name) === undefined)).toEqual([])
})

test("imports only lower ranks", () => {
  const wrong = all.filter(({ from, specifier }) => {
    if (!specifier.startsWith(".")) return false
    const target = relative(root, resolve(root, dirname(from), specifier))
    if (target.startsWith("..")) return true
    const [own, other] = [place(from), place(target)]
    return own !== other && (rankOf(other) ?? Number.NaN) >= (rankOf(own) ?? Number.NaN)
  })
  expect(wrong).toEqual([])
})

/** These folders also run in browsers. Types of other folders are erased. */
test.each([
  { folder: "client", allowed: ["eventsource-parser"] },
  {
    folder: "view",
    allowed: ["../event/part-delta.ts", "../util/invisible.ts", "../schema/spending.ts", "../util/json.ts"],
  },
])("imports no code of the engine in $folder", ({ folder, allowed }) => {
  const files = sources().filter((file) => place(relative(root, file)) === folder)
  const wrong = files.flatMap((file) => {
    const text = readFileSync(file, "utf8").replace(/^(?:im|ex)port type [^;]*? from "[^"]+"$/gm, "")
    const found = [...text.matchAll(/^(?:import|export|\}).* from "([^"]+)"/gm)].map(
      ([, specifier = ""]) => specifier,
    )
    return found.filter((specifier) => !specifier.startsWith("./") && !allowed.includes(specifier))
  })
  expect(files.length).toBeGreaterThan(2)
  expect(wrong).toEqual([])
})

test("does not import the public entry inside src", () => {
  expect(
    all.filter(
      ({ from, specifier }) =>
        /^\.\.?\/(.*\/)?\.?\.?index\.ts$/.test(specifier) &&
        resolve(root, dirname(from), specifier) === join(root, "index.ts"),
    ),
  ).toEqual([])
})

test("keeps fenced libraries behind their fence", () => {
  const wrong = all.filter(({ from, specifier }) =>
    Object.entries(fences).some(
      ([library, allowed]) =>
        (specifier === library || (library.endsWith("/") && specifier.startsWith(library))) &&
        !allowed.some((prefix) => from.startsWith(prefix)),
    ),
  )
  expect(wrong).toEqual([])
})

test("reads all sessions only to export them, and all subagent sessions of one session", () => {
  const allowed = [
    "session/copy-sessions.ts",
    "session/lineage.ts",
    "server/routes/history-routes.ts",
    "server/routes/opencode-project-routes.ts",
  ]
  const readers = sources()
    .filter((file) => /\ballSessions\(/.test(readFileSync(file, "utf8")))
    .map((file) => relative(root, file))
    .filter((file) => file !== "store/session-pages.ts")
  expect(readers.sort()).toEqual(allowed.sort())
})

test("contains no circles of files", () => {
  const targets = new Map<string, string[]>()
  for (const { from, specifier } of all)
    if (specifier.startsWith("."))
      targets.set(from, [
        ...(targets.get(from) ?? []),
        relative(root, resolve(root, dirname(from), specifier)),
      ])
  expect(circleIn(targets)).toEqual([])
})

/** Returns the files of one circle of imports, or an empty list. */
function circleIn(targets: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const path: string[] = []

  function visit(file: string): string[] {
    if (done.has(file)) return []
    const start = path.indexOf(file)
    if (start >= 0) return path.slice(start)
    path.push(file)
    for (const target of targets.get(file) ?? []) {
      const circle = visit(target)
      if (circle.length > 0) return circle
    }
    path.pop()
    done.add(file)
    return []
  }

  for (const file of targets.keys()) {
    const circle = visit(file)
    if (circle.length > 0) return circle
  }
  return []
}
