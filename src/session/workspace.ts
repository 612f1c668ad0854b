import { hostname } from "node:os"
import { runGit } from "../files/git.ts"
import { repositoryProblem } from "../permission/shell/git-repository.ts"
import type { Workspace } from "../schema/session.ts"
import { realPath } from "../util/paths.ts"

/** Maximum number of paths of uncommitted files in the description of a workspace. */
const maxListed = 100

/**
 * Describes the workspace of a new session, so that another machine can rebuild it: the remote of the git worktree, the
 * newest commit of the worktree that is on a branch of the remote, and the files that this commit does not contain.
 * Without such a commit, returns only the host. Runs nothing that the repository configures. Never rejects.
 */
export async function describeWorkspace(
  worktree: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Workspace> {
  const place = { host: hostname(), root: realPath(worktree) }
  const git = (...args: string[]) => runGit(args, { cwd: place.root, environment })
  try {
    const remote = shareableRemote((await git("remote", "get-url", "origin")).trim())
    if (remote === undefined) return place
    const ahead = (await git("rev-list", "--first-parent", "HEAD", "--not", "--remotes=origin")).split("\n")
    const unpushed = ahead.filter(Boolean).length
    const commit = (await git("rev-parse", "--verify", `HEAD~${unpushed}^{commit}`)).trim()
    const { listed, more } = await listUncommitted(place.root, git)
    return { ...place, git: { remote, commit, unpushed, uncommitted: listed, more } }
  } catch {
    // The directory is not a worktree, or the worktree has no remote or no commit.
    return place
  }
}

/**
 * Lists untracked and changed files. If the repository configures filters, which a search for changed files would run,
 * lists only untracked files.
 */
async function listUncommitted(
  root: string,
  git: (...args: string[]) => Promise<string>,
): Promise<{ listed: string[]; more?: number }> {
  const kinds = repositoryProblem(root) === undefined ? ["--others", "--modified"] : ["--others"]
  const output = await git("ls-files", ...kinds, "--exclude-standard", "-z")
  const all = [...new Set(output.split("\0").filter(Boolean))]
  const more = all.length - maxListed
  return { listed: all.slice(0, maxListed), more: more > 0 ? more : undefined }
}

/**
 * A URL for HTTP or SSH, or `user@host:path`. Neither a host nor a path starts with `-`, which git could read as an
 * option.
 */
const remotePattern =
  /^(?:(?:https?|ssh):\/\/(?!-)[\x21-\x7e]+|[\w.][\w.-]*@[\w][\w.-]*:(?![-:])[\x21-\x7e]+)$/

/**
 * Returns the address of a remote that other machines can use, without passwords. Returns undefined for other
 * transports, such as a path or `ext::`, which could run programs.
 */
export function shareableRemote(remote: string): string | undefined {
  if (!remotePattern.test(remote)) return undefined
  if (!remote.includes("://")) return remote
  if (!URL.canParse(remote)) return undefined
  const url = new URL(remote)
  url.password = ""
  if (url.protocol !== "ssh:") url.username = ""
  return url.hostname.startsWith("-") || /^%2d/i.test(url.hostname) ? undefined : url.href
}
