import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach, describe, expect, it } from "vitest"
import type { PermissionConfig } from "../../../src/permission/rules.ts"
import type { Program, ProgramTable } from "../../../src/permission/shell/program.ts"
import { buildTools } from "../../../src/permission/shell/programs/build-tools.ts"
import { builtins } from "../../../src/permission/shell/programs/builtins.ts"
import { filePrograms } from "../../../src/permission/shell/programs/files.ts"
import { gitPrograms } from "../../../src/permission/shell/programs/git.ts"
import { interpreters } from "../../../src/permission/shell/programs/interpreters.ts"
import { networkPrograms } from "../../../src/permission/shell/programs/network.ts"
import { systemPrograms } from "../../../src/permission/shell/programs/system.ts"
import { textPrograms } from "../../../src/permission/shell/programs/text.ts"
import { wrappers } from "../../../src/permission/shell/programs/wrappers.ts"
import { temporaryDirectory, verdictOf } from "../support.ts"

const file = "src/a.txt"

const tables: readonly (readonly [name: string, table: ProgramTable])[] = [
  ["files", filePrograms],
  ["text", textPrograms],
  ["git", gitPrograms],
  ["network", networkPrograms],
  ["interpreters", interpreters],
  ["build tools", buildTools],
  ["system", systemPrograms],
  ["wrappers", wrappers],
  ["builtins", builtins],
]

/**
 * Returns false for a program that runs another command, changes the shell, writes the file or rejects such operands.
 */
function mayRead({ wraps, builtin, operands, operand, script }: Program): boolean {
  const writes = operands !== undefined && /^(?:edits|changes|copies|moves|links)$/.test(operands)
  return !wraps && !builtin && !writes && operand?.test(file) !== false && script === undefined
}

/** Returns commands with one program each that name the file. */
function commandsOf(table: ProgramTable): { program: string; entry: Program; text: string }[] {
  return table
    .filter(([, entry]) => mayRead(entry))
    .flatMap(([names, entry]) =>
      names.split(" ").map((program) => ({
        program,
        entry,
        text: `${program} ${entry.operands === "pattern" ? "x " : ""}${file}`,
      })),
    )
}

describe.each(tables)("a rule for a program of the table %s", (_, table) => {
  let worktree: string
  beforeEach(() => {
    worktree = temporaryDirectory()
    mkdirSync(join(worktree, "src"))
    writeFileSync(join(worktree, file), "x\n")
  })

  /** Returns the commands that do not get the expected verdict if rules for their programs are added to the rules. */
  async function wrong(expected: string, rules: PermissionConfig & object, commands = commandsOf(table)) {
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
    const reading = commandsOf(table).filter(({ entry }) => entry.operands !== "text")
    expect(await wrong("deny", { read: { "src/*": "deny" } }, reading)).toEqual([])
    const showing = reading.filter(({ entry }) => entry.operands !== "names")
    expect(await wrong("ask", { read: { [file]: "ask" } }, showing)).toEqual([])
  })
})
