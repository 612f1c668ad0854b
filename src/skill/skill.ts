import { basename, dirname } from "node:path"
import * as z from "zod"

/** Instructions for a kind of work, with files beside them, in the format of Agent Skills. */
export interface Skill {
  name: string
  /** What it is for, so that the model knows when to load it. One line. */
  description: string
  /** Absolute: where its `SKILL.md` lies, and the paths in its text start. */
  directory: string
  /** The instructions. */
  body: string
}

/** As the format has it, but for case and dots, which others take too. It is a pattern of rules, so it holds no wildcards. */
const Name = z.lazy(() =>
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
    error: 'must be 1 to 64 letters, digits, ".", "_" or "-"',
  }),
)

const Fields = z.lazy(() =>
  z.looseObject({
    name: Name.optional(),
    description: z.string({ error: "must be a text that says what the skill is for" }).trim().min(1),
  }),
)

/**
 * Reads a `SKILL.md`. Without a name it has that of its directory. Fields that Tackle does not know are passed over:
 * what they would allow is the business of rules. Throws with a text that says what is wrong.
 */
export async function parseSkill(path: string, text: string): Promise<Skill> {
  const directory = dirname(path)
  // Brings the YAML parser, which takes longer than all else at a start: only where there is a skill.
  const { readFrontMatter } = await import("../util/front-matter.ts")
  const front = readFrontMatter(text)
  if (!front)
    throw new TypeError("it does not begin with front matter: --- on a line, name and description, ---")
  const fields = Fields.safeParse({ name: basename(directory), ...front.fields })
  if (!fields.success) {
    const problems = fields.error.issues.map(({ path: [field], message }) => `${String(field)} ${message}`)
    throw new TypeError(problems.join("; "))
  }
  const { name = "", description } = fields.data
  return { name, description: description.replace(/\s+/g, " "), directory, body: front.body }
}
