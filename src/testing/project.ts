import { execFile } from "node:child_process"
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"

/** A directory of real files for a test. */
export interface TemporaryProject {
  /** Absolute path of the directory with links resolved. */
  directory: string
  /** Returns the absolute path of a file in the project. */
  path(...names: string[]): string
  /** Writes a file and creates its parent directories. */
  write(name: string, content: string | Uint8Array): Promise<void>
  /** Reads a file as UTF-8 text. Rejects with a system error if the file cannot be read. */
  read(name: string): Promise<string>
  /** Deletes the directory. Idempotent. */
  remove(): Promise<void>
}

/**
 * Creates a project in the system's temporary directory. If `git` is true, the project is a Git repository on the
 * branch `main`, and its first commit contains the files. The user's git configuration is ignored. The caller must
 * remove the project.
 */
export async function temporaryProject(
  files: Record<string, string> = {},
  options: { git?: boolean } = {},
): Promise<TemporaryProject> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-project-")))
  const project: TemporaryProject = {
    directory,
    path: (...names) => join(directory, ...names),
    async write(name, content) {
      await mkdir(dirname(join(directory, name)), { recursive: true })
      await writeFile(join(directory, name), content)
    },
    read: (name) => readFile(join(directory, name), "utf8"),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
  for (const [name, content] of Object.entries(files)) await project.write(name, content)
  if (options.git) await commitAll(directory)
  return project
}

async function commitAll(directory: string): Promise<void> {
  const env = {
    PATH: process.env.PATH,
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_SYSTEM: "/dev/null",
    GIT_AUTHOR_NAME: "Test",
    GIT_AUTHOR_EMAIL: "test@localhost",
    GIT_COMMITTER_NAME: "Test",
    GIT_COMMITTER_EMAIL: "test@localhost",
  }
  const git = (...args: string[]) => promisify(execFile)("git", args, { cwd: directory, env })
  await git("init", "--quiet", "--initial-branch=main")
  await git("add", "--all")
  await git("commit", "--quiet", "--allow-empty", "--message", "Start")
}
