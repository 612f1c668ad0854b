import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { userDirectory } from "../../config/location.ts"
import { knownPermissions } from "../../permission/permission-names.ts"
import { permissionType } from "../../permission/rules.ts"
import { isToolId } from "../../tool/tool.ts"
import { UsageError } from "../../util/errors.ts"
import { displayPath, realPath } from "../../util/paths.ts"
import { printHint, printJson, printLine } from "../process/stdout.ts"
import { addEditorTypes } from "../workspace/editor-types.ts"
import { assertInside, writeNewFile } from "../workspace/new-file.ts"
import { keepTrust } from "../workspace/recheck-trust.ts"
import { customTools } from "../workspace/rules.ts"
import { type FormatFlags, openWorkspace, type Workspace } from "../workspace/workspace.ts"

/** Flags for `tackle tool new`. `user` creates the tool for every project. */
export interface ToolNewFlags extends FormatFlags {
  user?: boolean
}

/**
 * Runs `tackle tool new <name>`: writes a tool in TypeScript and its test, and adds types for editors. Throws
 * `UsageError` if the name is invalid or used, or a file cannot be written.
 */
export async function newTool(name: string, flags: ToolNewFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  checkName(name, workspace)
  const directory = flags.user
    ? join(userDirectory(workspace), "tackle")
    : join(workspace.worktree, ".tackle")
  if (!flags.user) assertInside(directory, workspace.worktree)
  const file = join(directory, "tool", `${name}.ts`)
  const test = join(directory, "test", `${name}.test.ts`)
  if (existsSync(test))
    throw new UsageError(`${test} already exists. Choose another name, or move this file.`)
  writeNewFile(file, toolSource(name))
  writeNewFile(test, testSource(name))
  const added = addEditorTypes(directory)
  const trusted = flags.user || (await keepTrust(workspace, file))

  const scope = flags.user ? "user" : "project"
  if (flags.format === "json") return printJson({ name, file, test, scope })
  const shown = (path: string) => displayPath(path, workspace.worktree)
  printLine(
    `Wrote ${shown(file)}, its test ${shown(test)}, and types for editors (${added.map(shown).join(", ") || "already there"}).`,
  )
  printHint(`Test it: ${nodeCommand(workspace)} --test ${shown(test)}`)
  const trust = trusted ? "" : `, after you trust it: tackle trust ${shown(file)}`
  printHint(`Call it: tackle tool call ${name} '{"text":"hello"}' --allow ${name}${trust}`)
}

/** Runs `tackle tool types`: adds types for editors to each config directory of the project that contains tools. */
export async function addTypes(flags: FormatFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  const directories = [".tackle", ".opencode"]
    .map((name) => join(workspace.worktree, name))
    .filter((path) => ["tool", "tools", "plugin", "plugins"].some((folder) => existsSync(join(path, folder))))
  if (directories.length === 0)
    throw new UsageError("This project has no tools or plugins. Create a tool: tackle tool new NAME")
  for (const directory of directories) {
    assertInside(directory, workspace.worktree)
    addEditorTypes(directory)
  }
  if (flags.format === "json") return printJson({ directories })
  const shown = directories.map((path) => displayPath(path, workspace.worktree)).join(", ")
  printLine(`Added types for editors to ${shown}.`)
}

function checkName(name: string, workspace: Workspace): void {
  if (!isToolId(name))
    throw new UsageError(`Invalid tool name "${name}". Use 1 to 64 letters, digits, "_" or "-".`)
  if (name === "invalid" || knownPermissions.includes(permissionType(name)))
    throw new UsageError(`"${name}" is the name of a built-in tool or permission. Choose another name.`)
  if (customTools(workspace)(name))
    throw new UsageError(`A tool named "${name}" already exists. Choose another name.`)
}

/** Returns "node" if it is the Node that runs Tackle, or else the path of that Node. */
function nodeCommand({ environment }: Workspace): string {
  const first = (environment.PATH ?? "")
    .split(delimiter)
    .map((directory) => join(directory, "node"))
    .find(existsSync)
  return first !== undefined && realPath(first) === realPath(process.execPath) ? "node" : process.execPath
}

function toolSource(name: string): string {
  return `import { Tool } from "tackle/tool"
import { z } from "zod"

export default Tool.define("${name}", {
  // The model reads the descriptions: what the tool does, when to use it, and when to use another tool.
  description: "Returns a text in upper case.",
  parameters: z.object({
    text: z.string().min(1).describe("The text to convert"),
  }),
  async execute({ text }, ctx) {
    // Throw an error that tells the model what to do next. Pass ctx.abort to functions that take a signal.
    ctx.abort.throwIfAborted()
    return { title: text, output: text.toUpperCase(), metadata: { length: text.length } }
  },
})
`
}

function testSource(name: string): string {
  return `import assert from "node:assert/strict"
import { test } from "node:test"
import { fakeContext, temporaryProject } from "tackle/testing"
import tool from "../tool/${name}.ts"

test("${name} returns the text in upper case", async () => {
  const project = await temporaryProject()
  await using ctx = fakeContext({ directory: project.directory })
  const { execute } = await tool.init()
  const result = await execute({ text: "hello" }, ctx)
  assert.equal(result.output, "HELLO")
  await project.remove()
})

test("${name} rejects an empty text", async () => {
  await using ctx = fakeContext({ directory: "." })
  const { execute } = await tool.init()
  await assert.rejects(execute({ text: "" }, ctx), /invalid arguments/)
})
`
}
