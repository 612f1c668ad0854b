import { createHash } from "node:crypto"
import { readFile, stat } from "node:fs/promises"
import { errorMessage, TackleError } from "../util/errors.ts"
import { realPath } from "../util/paths.ts"
import { parseSkill, type Skill } from "./skill.ts"

/** A `SKILL.md` to load. */
export interface SkillFile {
  path: string
  /** sha256 in hex by real path: the text has to be the one that stands here. Absent: it is taken as it is. */
  pinned?: ReadonlyMap<string, string>
}

/** A `SKILL.md` that cannot be used. For people; the others go on. */
export interface SkillProblem {
  file: string
  message: string
}

/** A text longer than this is no instruction, in bytes: the format advises to stay below some 20 KB. */
const maxBytes = 512 * 1024

/**
 * Reads skills, given in rising precedence: of two with one name the later one counts. The texts are kept, and a pinned
 * one is held against its hash, so that what a model is given is what the person trusted.
 */
export async function loadSkills(
  files: readonly (string | SkillFile)[],
): Promise<{ skills: ReadonlyMap<string, Skill>; problems: SkillProblem[] }> {
  const skills = new Map<string, Skill>()
  const problems: SkillProblem[] = []
  for (const file of files) {
    const { path, pinned }: SkillFile = typeof file === "string" ? { path: file } : file
    try {
      const skill = await parseSkill(path, await readSkill(path, pinned))
      skills.set(skill.name, skill)
    } catch (error) {
      problems.push({ file: path, message: errorMessage(error) })
    }
  }
  return { skills: new Map([...skills].sort(([a], [b]) => (a < b ? -1 : 1))), problems }
}

async function readSkill(path: string, pinned: SkillFile["pinned"]): Promise<string> {
  const { size } = await stat(path)
  if (size > maxBytes) throw new RangeError(`it has ${size} bytes; the limit is ${maxBytes}`)
  const bytes = await readFile(path)
  if (pinned && pinned.get(realPath(path)) !== createHash("sha256").update(bytes).digest("hex"))
    throw new TackleError("it is not what was trusted: it has changed since", {
      code: "skill.unpinned",
      recoverable: false,
    })
  return bytes.toString("utf8")
}
