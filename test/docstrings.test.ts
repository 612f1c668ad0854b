import { readdirSync, readFileSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import { expect, test } from "vitest"

const root = resolve(import.meta.dirname, "../src")

/** A declaration as biome formats it, at the start of a line. Re-exports do not count. */
const declaration =
  /^(?<exported>export )?(?:async )?(?<kind>function|const|let|abstract class|class|interface|type)\*? (?<name>\w+)(?<rest>.*)/

interface Declaration {
  /** `folder/file.ts:line name`, as a failure prints it. */
  place: string
  name: string
  kind: string
  exported: boolean
  /** True if a docstring precedes it. */
  documented: boolean
  /** True for `type X = z.infer<typeof X>`: the docstring of its schema counts. */
  inferred: boolean
}

function declarations(file: string): Declaration[] {
  const lines = readFileSync(file, "utf8").split("\n")
  return lines.flatMap((line, index) => {
    const { exported, kind, name, rest } = declaration.exec(line)?.groups ?? {}
    if (kind === undefined || name === undefined) return []
    return {
      place: `${relative(root, file)}:${index + 1} ${name}`,
      name,
      kind,
      exported: exported !== undefined,
      documented: isDocstring(lines.slice(0, index)),
      inferred: rest === ` = z.infer<typeof ${name}>`,
    }
  })
}

function isDocstring(before: readonly string[]): boolean {
  if (!before.at(-1)?.endsWith("*/")) return false
  return before.findLast((line) => line.startsWith("/*"))?.startsWith("/**") === true
}

/**
 * Returns the exported declarations without a docstring, except types inferred from a documented schema of the same
 * name, further overloads of a documented function, and re-exports.
 */
function undocumented(file: string): string[] {
  const all = declarations(file)
  return all
    .filter((one, index) => one.exported && !one.documented && !isSpokenFor(one, all.slice(0, index)))
    .map(({ place }) => place)
}

function isSpokenFor({ name, kind, inferred }: Declaration, before: readonly Declaration[]): boolean {
  const speaker = inferred ? "const" : kind === "function" ? kind : undefined
  return before.some((other) => other.name === name && other.kind === speaker && other.documented)
}

const files = readdirSync(root, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
  .map((entry) => join(entry.parentPath, entry.name))

test("finds declarations", () => {
  expect(files.flatMap(declarations).length).toBeGreaterThan(2000)
})

test("every exported declaration has a docstring", () => {
  expect(files.flatMap(undocumented)).toEqual([])
})
