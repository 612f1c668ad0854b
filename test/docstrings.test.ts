import { readdirSync, readFileSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import { expect, test } from "vitest"

const root = resolve(import.meta.dirname, "../src")

/** A declaration as biome formats it: it begins a line. Names that a file only passes on are none of its own. */
const declaration =
  /^(?<exported>export )?(?:async )?(?<kind>function|const|let|abstract class|class|interface|type)\*? (?<name>\w+)(?<rest>.*)/

interface Declaration {
  /** `folder/file.ts:line name`, as a failure prints it. */
  place: string
  name: string
  kind: string
  exported: boolean
  /** The lines right above it are a docstring. */
  documented: boolean
  /** `type X = z.infer<typeof X>`: its schema may speak for it. */
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
 * The exported declarations of a file without a docstring. Three need none: a type that is inferred from a documented
 * schema of its name, the further lines of an overloaded function whose first is documented, and what is passed on from
 * another file, where it is documented.
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
