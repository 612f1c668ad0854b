import { readFile, stat } from "node:fs/promises"
import { errorMessage } from "../util/errors.ts"
import { parseSkill, type Skill } from "./skill.ts"

/** A `SKILL.md` that cannot be used. For people; the others go on. */
export interface SkillProblem {
  file: string
  message: string
}

/** A text longer than this is no instruction, in bytes: the format advises to stay below some 20 KB. */
const maxBytes = 512 * 1024

/**
 * Reads skills, given in rising precedence: of two with one name the later one counts. The texts are kept, so that what
 * a model is given is what was there when the person's trust was looked up.
 */
export async function loadSkills(
  files: readonly string[],
): Promise<{ skills: ReadonlyMap<string, Skill>; problems: SkillProblem[] }> {
  const skills = new Map<string, Skill>()
  const problems: SkillProblem[] = []
  for (const file of files) {
    try {
      const { size } = await stat(file)
      if (size > maxBytes) throw new RangeError(`it has ${size} bytes; the limit is ${maxBytes}`)
      const skill = await parseSkill(file, await readFile(file, "utf8"))
      skills.set(skill.name, skill)
    } catch (error) {
      problems.push({ file, message: errorMessage(error) })
    }
  }
  return { skills: new Map([...skills].sort(([a], [b]) => (a < b ? -1 : 1))), problems }
}
