import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { expect, test } from "vitest"

const root = resolve(import.meta.dirname, "../src")

/** A folder imports itself and folders of a lower rank. Files directly in `src/` are named with their file. */
const ranks: Record<string, number> = {
  util: 0,
  schema: 1,
  event: 2,
  sandbox: 2,
  formatter: 3,
  lsp: 3,
  permission: 3,
  skill: 4,
  store: 4,
  tool: 4,
  builtin: 5,
  "external-tool": 5,
  mcp: 5,
  model: 5,
  plugin: 5,
  agent: 6,
  registry: 6,
  snapshot: 6,
  call: 7,
  session: 8,
  config: 9,
  runtime: 10,
  testing: 11,
  gateway: 12,
  "mcp-server": 12,
  cli: 14,
  "index.ts": 14,
}

/** Libraries that only these places may import. */
const fences: Record<string, readonly string[]> = {
  "@ai-sdk/": ["model/"],
  ai: ["call/ai-tools.ts"],
  "node:sqlite": ["store/"],
  "web-tree-sitter": ["permission/shell/parse.ts"],
  "vscode-jsonrpc/": ["lsp/connection.ts"],
  "@modelcontextprotocol/": ["mcp/", "mcp-server/"],
  jiti: ["util/load-module.ts"],
  sharp: ["builtin/file/fit-picture.ts"],
  yaml: ["util/front-matter.ts", "config/yaml.ts"],
  commander: ["cli/"],
  "@clack/prompts": ["cli/"],
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

function place(file: string): string {
  return file.split("/")[0] ?? file
}

const all = sources().flatMap(imports)

test("imports are found at all", () => {
  expect(all.length).toBeGreaterThan(50)
})

test("every folder of src has a rank", () => {
  const places = new Set(sources().map((file) => place(relative(root, file))))
  expect([...places].filter((name) => ranks[name] === undefined)).toEqual([])
})

test("imports go down the ranks", () => {
  const wrong = all.filter(({ from, specifier }) => {
    if (!specifier.startsWith(".")) return false
    const target = relative(root, resolve(root, dirname(from), specifier))
    if (target.startsWith("..")) return true
    const [own, other] = [place(from), place(target)]
    return own !== other && (ranks[other] ?? Number.NaN) >= (ranks[own] ?? Number.NaN)
  })
  expect(wrong).toEqual([])
})

test("nothing in src imports the public entry", () => {
  expect(
    all.filter(
      ({ from, specifier }) =>
        /^\.\.?\/(.*\/)?\.?\.?index\.ts$/.test(specifier) &&
        resolve(root, dirname(from), specifier) === join(root, "index.ts"),
    ),
  ).toEqual([])
})

test("fenced libraries stay behind their fence", () => {
  const wrong = all.filter(({ from, specifier }) =>
    Object.entries(fences).some(
      ([library, allowed]) =>
        (specifier === library || (library.endsWith("/") && specifier.startsWith(library))) &&
        !allowed.some((prefix) => from.startsWith(prefix)),
    ),
  )
  expect(wrong).toEqual([])
})
