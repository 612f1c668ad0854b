import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { text as readAll } from "node:stream/consumers"
import type { Agent } from "../../agent/agent.ts"
import { builtinAgents } from "../../agent/builtin.ts"
import { readLayer } from "../../config/layer.ts"
import { userDirectory } from "../../config/location.ts"
import { isMarkdownName } from "../../config/markdown-place.ts"
import { wholeName } from "../../config/shown-name.ts"
import { errorMessage, systemCode, UsageError } from "../../util/errors.ts"
import { writeFrontMatter } from "../../util/front-matter.ts"
import { displayPath, isInside, realPath } from "../../util/paths.ts"
import { atTerminal } from "../client.ts"
import { type FormatFlags, openPlace, type Place } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { question } from "../question.ts"

export interface AgentCreateFlags extends FormatFlags {
  description?: string
  prompt?: string
  mode?: Agent["mode"]
  model?: string
  temperature?: number
  steps?: number
  tools?: string
  user?: boolean
}

/**
 * `tackle agent create [name]`: writes the file of a new agent and changes nothing that is there. Asks at a terminal for
 * the name, what it is for and the prompt, where they are not given. Throws `UsageError` for what is missing or wrong.
 */
export async function createAgent(given: string | undefined, flags: AgentCreateFlags): Promise<void> {
  const place = await openPlace(flags)
  const name = (given ?? (await ask("name", "Name of the agent"))).trim()
  checkName(name, place)
  const description = flags.description ?? (await ask("--description", "What is it for?"))
  const prompt = flags.prompt === "-" ? await readAll(process.stdin) : (flags.prompt ?? (await askPrompt()))
  const { mode, model, temperature, steps } = flags
  const fields = { description, mode, model, temperature, steps, tools: toolsOf(flags.tools) }
  const content = writeFrontMatter(fields, prompt)

  const directory = join(
    flags.user ? join(userDirectory(place), "tackle") : join(place.worktree, ".tackle"),
    "agent",
  )
  const file = join(directory, `${name}.md`)
  const scope = flags.user ? "user" : "project"
  // What could not be read again is not written.
  await readLayer({ path: file, kind: "tackle", scope, text: content, hash: "", trusted: true }, place)
  if (!flags.user) checkInside(directory, place.worktree)
  write(file, content)

  if (flags.format === "json") return printJson({ name, file, scope })
  const shown = wholeName(displayPath(file, place.worktree))
  printLine(`Wrote ${shown}.`)
  if (!flags.user) printLine(`It counts once it is trusted: tackle trust ${shown}`)
}

function checkName(name: string, { config }: Place): void {
  if (!isMarkdownName(name)) {
    throw new UsageError(
      `"${name}" is no name of an agent: letters, digits, ".", "_" and "-", with "/" between such words.`,
    )
  }
  const source = config.origin(["agent", name])
  if (source)
    throw new UsageError(`There is an agent ${name} already: ${source.file}:${source.line}. Edit it there.`)
  if (builtinAgents().some((agent) => agent.name === name)) {
    throw new UsageError(`The agent ${name} is built in. A file that changes it has to be written by hand.`)
  }
}

async function ask(missing: string, message: string): Promise<string> {
  if (!atTerminal()) throw new UsageError(`There is no terminal to ask at: give ${missing}.`)
  const validate = (value: string | undefined) => (value?.trim() ? undefined : "It cannot be empty.")
  const answer = await question(({ text }, signal) =>
    text({ message, validate, output: process.stderr, signal }),
  )
  if (answer === undefined) throw new UsageError("Nothing was written.")
  return answer
}

/** An agent without a prompt of its own has that of `build`. */
async function askPrompt(): Promise<string> {
  if (!atTerminal()) return ""
  const answer = await question(({ text }, signal) =>
    text({
      message: "What is it told? (Empty: what build is told. The file can be edited.)",
      output: process.stderr,
      signal,
    }),
  )
  if (answer === undefined) throw new UsageError("Nothing was written.")
  return answer ?? ""
}

function toolsOf(list: string | undefined): Record<string, boolean> | undefined {
  if (list === undefined) return undefined
  const ids = list.split(",").map((id) => id.trim())
  return Object.fromEntries([["*", false], ...ids.filter((id) => id !== "").map((id) => [id, true])])
}

/** A link in a project must not make its file one of somewhere else. */
function checkInside(directory: string, worktree: string): void {
  if (isInside(realPath(directory), realPath(worktree))) return
  throw new UsageError(`${wholeName(directory)} leads out of this project. Nothing was written.`)
}

function write(file: string, content: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, { flag: "wx" })
  } catch (error) {
    const reason = systemCode(error) === "EEXIST" ? "it is there already" : errorMessage(error)
    throw new UsageError(`${wholeName(file)} was not written: ${reason}.`, error)
  }
}
