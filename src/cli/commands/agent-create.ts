import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { text as readAll } from "node:stream/consumers"
import type { Agent } from "../../agent/agent.ts"
import { builtinAgents } from "../../agent/builtin.ts"
import { ConfigError } from "../../config/errors.ts"
import { readLayer } from "../../config/layer.ts"
import { userDirectory } from "../../config/location.ts"
import { isMarkdownName } from "../../config/markdown-place.ts"
import { wholeName } from "../../config/shown-name.ts"
import { permissionType } from "../../permission/rules.ts"
import { errorMessage, systemCode, UsageError } from "../../util/errors.ts"
import { writeFrontMatter } from "../../util/front-matter.ts"
import { displayPath, isInside, realPath } from "../../util/paths.ts"
import { nearNames } from "../../util/similarity.ts"
import { wildcardMatch } from "../../util/wildcard.ts"
import { atTerminal } from "../client.ts"
import { interruptible } from "../interrupt.ts"
import { openTackle } from "../open-tackle.ts"
import { customTools, knownPermissions } from "../permission-names.ts"
import { type FormatFlags, openPlace, type Place } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { question } from "../question.ts"

/** What goes into the file: a field without its flag is left out of it, or asked for. */
export interface AgentCreateFlags extends FormatFlags {
  description?: string
  /** `-` reads it from stdin. */
  prompt?: string
  mode?: Agent["mode"]
  model?: string
  temperature?: number
  steps?: number
  /** Ids with commas between them. Default: all tools. */
  tools?: string
  /** Into the person's own folder, in place of the project's. */
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
  const ids = toolIDs(flags.tools)
  if (ids) await checkTools(ids, place)
  const description = flags.description ?? (await ask("--description", "What is it for?"))
  const prompt = flags.prompt === "-" ? await readAll(process.stdin) : (flags.prompt ?? (await askPrompt()))
  const { mode, model, temperature, steps } = flags
  const tools = ids && Object.fromEntries([["*", false], ...ids.map((id) => [id, true])])
  const fields = { description, mode, model, temperature, steps, tools }
  const content = writeFrontMatter(fields, prompt)

  const directory = join(
    flags.user ? join(userDirectory(place), "tackle") : join(place.worktree, ".tackle"),
    "agent",
  )
  const file = join(directory, `${name}.md`)
  const scope = flags.user ? "user" : "project"
  // What could not be read again is not written.
  const source = { path: file, kind: "tackle", scope, text: content, hash: "", trusted: true } as const
  const { problems } = await readLayer(source, place)
  if (problems.length > 0) throw new ConfigError(problems)
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

function toolIDs(list: string | undefined): string[] | undefined {
  return list
    ?.split(",")
    .map((id) => id.trim())
    .filter((id) => id !== "")
}

/** Only where a name is of nothing that is known anyway are the tools of plugins and servers looked at. */
async function checkTools(ids: readonly string[], place: Place): Promise<void> {
  const isCustom = customTools(place)
  const isKnown = (id: string) => knownPermissions.includes(permissionType(id)) || isCustom(id)
  const open = ids.filter((id) => id !== "*" && !isKnown(id))
  if (open.length === 0) return
  const tools = (await offeredTools(place)).filter((id) => id !== "invalid")
  const wrong = open.find((id) => !tools.some((tool) => wildcardMatch(tool, id)))
  if (wrong === undefined) return
  const near = nearNames(wrong, tools, Math.max(2, Math.floor(wrong.length / 3))).slice(0, 3)
  const hint = near.length > 0 ? `Did you mean ${near.join(" or ")}?` : `There are: ${tools.join(", ")}.`
  throw new UsageError(`There is no tool "${wrong}" (--tools). ${hint}`)
}

function offeredTools(place: Place): Promise<string[]> {
  return interruptible(async (signal) => {
    const tackle = await openTackle(place, {})
    try {
      return (await tackle.tools({ signal })).map(({ id }) => id)
    } finally {
      await tackle.close()
    }
  })
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
