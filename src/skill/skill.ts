import { createHash } from "node:crypto"
import { readFile, stat } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import * as z from "zod"
import { errorMessage, TackleError } from "../util/errors.ts"
import { directoryEntries, isDirectory, isFile } from "../util/file-system.ts"
import { realPath } from "../util/paths.ts"

/** Instructions and files for a kind of task, in the Agent Skills format. */
export interface Skill {
  name: string
  /** One line that tells the model when to load the skill. */
  description: string
  /** Absolute path of the directory that contains `SKILL.md`. Paths in the instructions are relative to it. */
  directory: string
  /** The instructions: the content of `SKILL.md` after the front matter. */
  body: string
}

/** A `SKILL.md` file to load. */
export interface SkillFile {
  path: string
  /** SHA-256 hashes in hex, keyed by real path. The file must match its hash. If undefined, any content is accepted. */
  pinned?: ReadonlyMap<string, string>
}

/** A problem with a `SKILL.md` file. Other skills are not affected. */
export interface SkillProblem {
  file: string
  message: string
}

/** Maximum size of `SKILL.md` in bytes. The format recommends at most 20 KB. */
const maxBytes = 512 * 1024

/**
 * Reads skill files in increasing order of precedence. A later skill replaces an earlier skill with the same name. A
 * pinned file must match its hash, so that the model receives the content that the user trusted. A file that cannot be
 * loaded is reported as a problem.
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
  if (size > maxBytes) throw new RangeError(`it is ${size} bytes; the limit is ${maxBytes}`)
  const bytes = await readFile(path)
  if (pinned && pinned.get(realPath(path)) !== createHash("sha256").update(bytes).digest("hex"))
    throw new TackleError("it has changed since it was trusted", {
      code: "skill.unpinned",
      recoverable: false,
    })
  return bytes.toString("utf8")
}

/**
 * A skill's name. Upper-case letters and dots are allowed, because other tools allow them too. Wildcards are not
 * allowed, because rules use the name as a pattern.
 */
const Name = z.lazy(() =>
  z.string({ error: "must be text" }).regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
    error: 'must be 1 to 64 letters, digits, ".", "_" or "-", and must begin with a letter or digit',
  }),
)

const Fields = z.lazy(() => {
  const error = "must be text that describes the skill"
  return z.looseObject({ name: Name.optional(), description: z.string({ error }).trim().min(1, { error }) })
})

/**
 * Parses a `SKILL.md`. The skill's name defaults to the name of the file's directory. Unknown fields are ignored,
 * because only rules grant permissions. If the file is invalid, throws an error that describes the problem.
 */
async function parseSkill(path: string, text: string): Promise<Skill> {
  const directory = dirname(path)
  // The YAML parser is slow to load, so it is loaded only if there is a skill.
  const { readFrontMatter } = await import("../util/front-matter.ts")
  const front = readFrontMatter(text)
  if (!front)
    throw new TypeError(
      "it does not start with front matter, which consists of a line ---, the fields name (optional) and description, and another line ---",
    )
  const fields = Fields.safeParse({ name: basename(directory), ...front.fields })
  if (!fields.success) {
    const isNamed = front.fields.name !== undefined
    const problems = fields.error.issues.map(({ path: [field], message }) =>
      field === "name" && !isNamed
        ? `the name of its directory, which is used because the field name is missing, ${message}`
        : `${String(field)} ${message}`,
    )
    throw new TypeError(problems.join("; "))
  }
  const { name = "", description } = fields.data
  return { name, description: description.replace(/\s+/g, " "), directory, body: front.body }
}

/** Name of the file that makes a directory a skill. */
const fileName = "SKILL.md"

/** Maximum depth of the search. Skill directories can be inside group directories. */
const maxDepth = 3

/** Returns the `SKILL.md` files below the roots, ordered by root and then by name. Does not search inside a skill. */
export function findSkillFiles(roots: readonly string[]): string[] {
  return roots.flatMap((root) => (isDirectory(root) ? skillsIn(root, maxDepth) : []))
}

/** Returns the paths to watch for new, changed and deleted skills, including missing roots. */
export function skillWatchPaths(roots: readonly string[]): string[] {
  return roots.flatMap((root) => watchPathsIn(root, maxDepth))
}

function watchPathsIn(directory: string, depth: number): string[] {
  if (depth === 0 || !isDirectory(directory)) return [directory]
  const below = subdirectories(directory).flatMap((path) => {
    const file = join(path, fileName)
    // Only `SKILL.md` defines a skill. The model reads other files when it needs them.
    return isFile(file) ? [path, file] : watchPathsIn(path, depth - 1)
  })
  return [directory, ...below]
}

function skillsIn(directory: string, depth: number): string[] {
  if (depth === 0) return []
  return subdirectories(directory).flatMap((path) => {
    const file = join(path, fileName)
    return isFile(file) ? [file] : skillsIn(path, depth - 1)
  })
}

/** Returns subdirectories, including links to directories. Omits hidden directories and `node_modules`. */
function subdirectories(directory: string): string[] {
  return directoryEntries(directory)
    .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && name !== "node_modules")
    .sort()
    .map((name) => join(directory, name))
    .filter(isDirectory)
}
