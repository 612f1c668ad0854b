import { readFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import type { SandboxState } from "../sandbox/sandbox.ts"

/** The state of a project and of the machine that it is on. */
export interface ProjectStatus {
  directory: string
  worktree: string
  /** The checked-out git branch, if any. */
  branch?: string
  /** Whether commands run in a sandbox. */
  sandbox: SandboxState
}

/** Returns the checked-out git branch of a worktree, if any. */
export async function branchOf(worktree: string): Promise<string | undefined> {
  const git = join(worktree, ".git")
  // In a linked worktree, `.git` is a file with the path of the directory.
  const link = await readFile(git, "utf8").catch(() => "")
  const directory = resolve(worktree, /^gitdir: (.+)/.exec(link)?.[1] ?? git)
  const head = await readFile(join(directory, "HEAD"), "utf8").catch(() => "")
  return /^ref: refs\/heads\/(.+)/.exec(head)?.[1]
}
