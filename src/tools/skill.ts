import * as z from "zod"
import type { Skill } from "../skill/skill.ts"
import { define, type Info } from "../tool/tool.ts"
import { throwIfAborted } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"
import { listSkillFiles } from "./skill/list-skill-files.ts"
import { listSkills } from "./skill/list-skills.ts"

const parameters = z.lazy(() =>
  z.object({ name: z.string().min(1).describe("Name of the skill, as listed") }),
)

/** What the host knows of skills. */
export interface SkillOptions {
  /** Those that the rules let the agent load, by name. */
  offered(agent: string): readonly Skill[]
  find(name: string): Skill | undefined
}

/** The model asked for a skill that is not there. */
export class UnknownSkillError extends TackleError {
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

/** Gives the model the instructions of a skill, with the place and the names of its files. */
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
      const files = await listSkillFiles(directory, ctx.abort)
      return {
        title: skill.name,
        // The files first: a text that is cut keeps its beginning.
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
