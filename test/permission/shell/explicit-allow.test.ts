import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, it } from "vitest"
import type { PermissionConfig } from "../../../src/permission/rules.ts"
import type { Program } from "../../../src/permission/shell/program.ts"
import { allPrograms } from "../../../src/permission/shell/program-table.ts"
import { temporaryDirectory, verdictOf } from "../support.ts"

const file = "src/a.txt"

/**
 * Returns false for a program that runs another command, changes the shell, writes the file or rejects such operands.
 */
function mayRead({ wraps, builtin, operands, operand, script, rewrites }: Program): boolean {
  const writes = operands !== undefined && /^(?:edits|changes|copies|moves|links)$/.test(operands)
  return !wraps && !builtin && !writes && !rewrites && operand?.test(file) !== false && script === undefined
}

/** Returns commands with one program each that name the file. */
function readingCommands(): { program: string; entry: Program; text: string }[] {
  return allPrograms
    .filter(([, entry]) => mayRead(entry))
    .flatMap(([names, entry]) =>
      names.split(" ").map((program) => ({
        program,
        entry,
        text: `${program} ${entry.operands === "pattern" ? "x " : ""}${file}`,
      })),
    )
}

describe("a rule for a program", () => {
  let worktree: string
  beforeEach(() => {
    worktree = temporaryDirectory()
    mkdirSync(join(worktree, "src"))
    writeFileSync(join(worktree, file), "x\n")
  })

  /** Returns the commands that do not get the expected verdict if rules for their programs are added to the rules. */
  async function wrong(expected: string, rules: PermissionConfig & object, commands = readingCommands()) {
    const found: string[] = []
    for (const { program, text } of commands) {
      const config = { "*": "ask" as const, ...rules, bash: { [`${program} *`]: "allow" as const } }
      const { action } = await verdictOf(config, "bash", text, { worktree })
      if (action !== expected) found.push(`${text}: ${action}`)
    }
    return found
  }

  it("allows reading ordinary files", async () => {
    expect(await wrong("allow", {})).toEqual([])
  })

  it("does not overrule rules that name the file", async () => {
    const reading = readingCommands().filter(({ entry }) => entry.operands !== "text")
    expect(await wrong("deny", { read: { "src/*": "deny" } }, reading)).toEqual([])
    const showing = reading.filter(({ entry }) => entry.operands !== "names")
    expect(await wrong("ask", { read: { [file]: "ask" } }, showing)).toEqual([])
  })
})
