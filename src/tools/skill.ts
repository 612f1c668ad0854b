import { opendir } from "node:fs/promises"
import { join, relative } from "node:path"
import * as z from "zod"
import { showName } from "../files/show-name.ts"
import type { Skill } from "../skill/skill.ts"
import { define, type Info } from "../tool/tool.ts"
import { throwIfAborted } from "../util/abort.ts"
import { errorMessage, TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"

const parameters = z.lazy(() =>
  z.object({ name: z.string().min(1).describe("Name of the skill, as listed") }),
)

/** Access to the host's skills. */
export interface SkillOptions {
  /** Returns the skills that the agent may load, sorted by name. */
  offered(agent: string): readonly Skill[]
  find(name: string): Skill | undefined
}

/** Thrown if the model requests a skill that does not exist. */
class UnknownSkillError extends TackleError {
  constructor(name: string, offered: readonly Skill[]) {
    const names = offered.map((skill) => skill.name).slice(0, maxNames)
    const more = offered.length - names.length
    const list = `${names.join(", ") || "none"}${more > 0 ? ` and ${more} more` : ""}`
    super(`Unknown skill "${name.slice(0, 100)}". Available: ${list}.`, {
      code: "skill.unknown",
      recoverable: true,
    })
  }
}

const maxNames = 50

/** Creates the skill tool, which returns a skill's instructions, directory and file names. */
export function createSkillTool(skills: SkillOptions): Info<typeof parameters> {
  return define("skill", async (init) => ({
    description: describe(skills.offered(init?.agent?.name ?? "")),
    parameters,
    access: "read",
    async execute({ name }, ctx) {
      const skill = skills.find(name)
      if (!skill) throw new UnknownSkillError(name, skills.offered(ctx.agent))
      const { directory, body, description } = skill
      await ctx.ask({
        permission: "skill",
        patterns: [skill.name],
        always: [skill.name],
        metadata: { skill: skill.name, description, directory },
      })
      throwIfAborted(ctx.abort)
      const files = await filesLine(directory, ctx.abort)
      return {
        title: skill.name,
        // The files come first, because truncation keeps the beginning.
        output: `Skill ${skill.name}\nDirectory: ${directory}\n${files}\n\n${body}`,
        metadata: { name: skill.name, directory },
      }
    },
  }))
}

function describe(offered: readonly Skill[]): string {
  const text = readText(new URL("./skill.md", import.meta.url))
  return offered.length === 0
    ? `${text}\nNo skills are available.`
    : `${text}\nSkills:\n${listSkills(offered)}`
}

/**
 * Maximum length of a listed description, in characters. The format allows 1024, which is too long to include in every
 * request.
 */
const maxDescription = 300
/** Maximum lengths of the skill list, in characters: with descriptions, and with names only. */
const maxDescribed = 6_000
const maxNamed = 8_000

/**
 * Lists the skills, one per line. After {@link maxDescribed} characters, lists only names. After {@link maxNamed}
 * characters, only counts the remaining skills.
 */
export function listSkills(skills: readonly Skill[]): string {
  const lines: string[] = []
  let length = 0
  for (const { name, description } of skills) {
    const whole = `- ${name}: ${cut(description)}`
    const line = length + whole.length <= maxDescribed ? whole : `- ${name}`
    if (length + line.length > maxNamed) break
    lines.push(line)
    length += line.length + 1
  }
  const left = skills.length - lines.length
  if (left > 0) lines.push(`- and ${left} more. Load one of them if the user names it.`)
  return lines.join("\n")
}

function cut(text: string): string {
  return text.length > maxDescription ? `${text.slice(0, maxDescription - 1).toWellFormed()}…` : text
}

/** Maximum number of files listed. */
const maxFiles = 50
/** Maximum number of directory entries visited. */
const maxEntries = 1_000

/** Returns a line that lists a skill's files other than `SKILL.md`. */
async function filesLine(directory: string, signal: AbortSignal): Promise<string> {
  try {
    const { files, isCut } = await listFiles(directory, signal)
    if (files.length === 0)
      return isCut ? `Files: none among the first ${maxEntries} entries of the directory` : "Files: none"
    const more = isCut ? ", and more" : ""
    return `Files: ${files.sort().map(showName).join(", ")}${more}`
  } catch (error) {
    throwIfAborted(signal)
    return `Cannot list the skill's files: ${errorMessage(error)}`
  }
}

/** Lists files, upper directory levels first. `isCut` is true if a limit was reached before the end. */
async function listFiles(root: string, signal: AbortSignal): Promise<{ files: string[]; isCut: boolean }> {
  const files: string[] = []
  const directories = [root]
  let left = maxEntries
  for (const directory of directories) {
    for await (const entry of await opendir(directory)) {
      throwIfAborted(signal)
      left -= 1
      if (left < 0) return { files, isCut: true }
      const path = join(directory, entry.name)
      if (entry.isDirectory() && entry.name !== ".git" && entry.name !== "node_modules")
        directories.push(path)
      if (!entry.isFile() || path === join(root, "SKILL.md")) continue
      if (files.length === maxFiles) return { files, isCut: true }
      files.push(relative(root, path))
    }
  }
  return { files, isCut: false }
}
