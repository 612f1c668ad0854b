import { existsSync } from "node:fs"
import { lstat, mkdir, readFile, readlink, rm } from "node:fs/promises"
import { hostname } from "node:os"
import { dirname, join, relative } from "node:path"
import { runGit } from "../files/git.ts"
import { putBack, type RestoredFile } from "../files/put-back.ts"
import type { TrackTemporary } from "../files/temporary-files.ts"
import { repositoryProblem } from "../permission/shell/git-repository.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { FileChange, FileVersion, PatchPart } from "../schema/part.ts"
import type { Session, Workspace } from "../schema/session.ts"
import { type ContentStore, hashOf } from "../store/content-store.ts"
import type { Change, LeaseHolder, Store } from "../store/store.ts"
import { errorMessage, TackleError } from "../util/errors.ts"
import { unlessMissing } from "../util/file-system.ts"
import { continueIdsAfter, newId } from "../util/id.ts"
import { isInside, realPath } from "../util/paths.ts"
import { currentTime } from "../util/time.ts"
import { counted } from "../util/words.ts"
import { historyPages } from "./history.ts"
import { withLease } from "./lease.ts"
import { descendants } from "./lineage.ts"

/** Maximum number of uncommitted file paths in a workspace description. */
const maxListed = 100

/**
 * Describes the workspace of a new session, so that another machine can rebuild it: the remote of the git worktree, the
 * newest commit of the worktree that is on a branch of the remote, and the paths of uncommitted files. Without such a
 * commit, returns only the host and the root. Runs nothing that the repository configures. Never rejects.
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
 * Lists untracked, staged and changed files. If the repository configures filters, which a search for unstaged changes
 * would run, does not list files with only unstaged changes.
 */
async function listUncommitted(
  root: string,
  git: (...args: string[]) => Promise<string>,
): Promise<{ listed: string[]; more?: number }> {
  const kinds = repositoryProblem(root) === undefined ? ["--others", "--modified"] : ["--others"]
  const unstaged = await git("ls-files", ...kinds, "--exclude-standard", "-z")
  const staged = await git("diff-index", "--cached", "--name-only", "--relative", "-z", "HEAD")
  const all = [...new Set(`${unstaged}${staged}`.split("\0").filter(Boolean))]
  const more = all.length - maxListed
  return { listed: all.slice(0, maxListed), more: more > 0 ? more : undefined }
}

/**
 * Matches a URL for HTTP or SSH, or `user@host:path`. Neither a host nor a path starts with `-`, which git could read
 * as an option.
 */
const remotePattern =
  /^(?:(?:https?|ssh):\/\/(?!-)[\x21-\x7e]+|[\w.][\w.-]*@[\w][\w.-]*:(?![-:])[\x21-\x7e]+)$/

/**
 * Returns the address of a remote that other machines can use, without the password and, for HTTP, without the user.
 * Returns undefined for other transports, such as a path or `ext::`, which could run programs.
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

/** Options for {@link openWorkspace}. */
export interface OpenWorkspaceOptions {
  store: Store
  /** The shared contents of changed files. */
  contents: ContentStore
  /** The private directory for rebuilt workspaces: `workspaces` in the data directory. */
  directory: string
  /** Engine that holds the session's lease while the session is moved. */
  holder: LeaseHolder
  /** Records temporary files next to a restored file. */
  trackTemporary: TrackTemporary
  environment: Readonly<Record<string, string | undefined>>
  /** Name of this machine. Default: the host name. */
  host?: string
  signal?: AbortSignal
}

/** An open workspace. */
export interface OpenedWorkspace {
  /** The session's working directory on this machine. */
  directory: string
  /** True if the workspace was rebuilt here and the session was moved. */
  isRebuilt: boolean
  /** Descriptions of files and commits that could not be rebuilt, one line each. The model receives them too. */
  missing: string[]
}

/** Thrown if a workspace cannot be used or rebuilt on this machine. Nothing was changed. */
class WorkspaceError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "workspace", recoverable: false, cause })
  }
}

/**
 * Returns a session's directory on this machine. If the session worked on another machine, or if its directory no
 * longer exists, rebuilds its worktree: clones the remote at the recorded commit, restores the files that the session
 * changed, and moves the session and its subagents there. Runs nothing that the repository contains. Throws {@link
 * WorkspaceError} if the worktree cannot be rebuilt, and `SessionHeldError` if an engine uses the session.
 */
export async function openWorkspace(given: Session, options: OpenWorkspaceOptions): Promise<OpenedWorkspace> {
  const { host = hostname(), store, holder } = options
  const { workspace, directory } = given
  const isHere = workspace === undefined || workspace.host === host
  if (isHere && existsSync(directory)) return { directory, isRebuilt: false, missing: [] }
  usableRecipe(given, host)
  return withLease({ store, sessionID: given.id, holder }, async (lease) => {
    // Another process may have changed or moved the session before it was leased.
    const session = (await store.session(given.id)) ?? given
    if (session.directory !== directory)
      throw new WorkspaceError(
        `Session ${session.id} has moved from ${directory} to ${session.directory} in the meantime. Try again.`,
      )
    const recipe = usableRecipe(session, host)
    const { directories, root } = await clone(session, recipe, options)
    try {
      const history = await readPatches(store, session.id)
      const states = finalStates(history.patches)
      const outcome = await restore(states, { from: recipe.root, to: root }, options)
      const missing = [...outcome.missing, ...describeGaps(recipe, states), ...history.unseen]
      const moved = relocate(session, root, host)
      const changes: Change[] = [{ kind: "session", session: moved }]
      for (const child of await descendants(store, session.id))
        changes.push({ kind: "session", session: relocate(child, root, host) })
      for (const part of history.patches)
        changes.push({ kind: "part", part: rebased(part, { from: recipe.root, to: root }) })
      changes.push(...noteChanges(moved, history.last, { from: recipe.root, to: root, missing }))
      await mkdir(moved.directory, { recursive: true })
      await store.commit(changes, { durable: true, lease })
      return { directory: moved.directory, isRebuilt: true, missing }
    } catch (error) {
      await rm(directories, { recursive: true, force: true })
      throw error
    }
  })
}

type Recipe = Workspace & { git: NonNullable<Workspace["git"]> }

/**
 * Returns the recipe for rebuilding a workspace. The recipe may come from an archive or another program, so this
 * function checks it again. Throws {@link WorkspaceError} if the recipe is missing or invalid.
 */
function usableRecipe({ id, directory, workspace }: Session, host: string): Recipe {
  const other = workspace && workspace.host !== host ? workspace.host : undefined
  const where = other === undefined ? directory : `${directory} on ${other}`
  const git = workspace?.git
  if (!workspace || !git)
    throw new WorkspaceError(
      other === undefined
        ? `The directory ${directory} of session ${id} does not exist and cannot be rebuilt, because no commit on a git remote was recorded. Restore the directory, or start a new session.`
        : `The directory ${directory} of session ${id} is on another machine (${other}) and cannot be rebuilt here, because no commit on a git remote was recorded. Continue the session on that machine.`,
    )
  const remote = shareableRemote(git.remote)
  if (remote === undefined || !/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(git.commit))
    throw new WorkspaceError(
      `The workspace of session ${id} (${where}) cannot be rebuilt: the recorded remote or commit is not valid. Only remotes over HTTP and SSH are supported.`,
    )
  return { ...workspace, git: { ...git, remote } }
}

/** Clones the recorded commit into a new private directory. Returns this directory and the root of the worktree. */
async function clone(
  { id }: Session,
  { git }: Recipe,
  { directory, environment, signal }: OpenWorkspaceOptions,
): Promise<{ directories: string; root: string }> {
  const directories = join(directory, id, newId("prc"))
  const root = join(directories, "worktree")
  await mkdir(root, { recursive: true, mode: 0o700 })
  const local = { cwd: root, environment, signal }
  const run = (...args: string[]) => runGit(args, local)
  const fetch = (...wanted: string[]) =>
    runGit(["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "origin", ...wanted], {
      ...local,
      connects: true,
    })
  const has = () => run("cat-file", "-e", `${git.commit}^{commit}`).then(...settled)
  try {
    await run("init", "--quiet", "--template=", "--initial-branch=main")
    await run("remote", "add", "--", "origin", git.remote)
    await fetch("+refs/heads/*:refs/remotes/origin/*")
    // No branch contains the commit anymore.
    if (!(await has())) await fetch(git.commit)
    await run("checkout", "--quiet", "--detach", "--no-recurse-submodules", git.commit)
  } catch (error) {
    await rm(directories, { recursive: true, force: true })
    throw new WorkspaceError(
      `The workspace of session ${id} cannot be rebuilt from ${git.remote} at ${git.commit}: ${errorMessage(error)}. Check that this machine has access to the remote.`,
      error,
    )
  }
  return { directories, root: realPath(root) }
}

const settled = [() => true, () => false] as const

/** A session's recorded file changes. `last` is the session's latest message. */
interface History {
  patches: PatchPart[]
  /** Descriptions of changes that were not tracked. */
  unseen: string[]
  last: MessageWithParts | undefined
}

async function readPatches(store: Store, sessionID: string): Promise<History> {
  const history: History = { patches: [], unseen: [], last: undefined }
  for await (const page of historyPages((query) => store.messages(sessionID, query))) {
    for (const part of page.flatMap(({ parts }) => parts)) {
      if (part.type !== "patch") continue
      history.patches.push(part)
      history.unseen.push(...(part.unseen ?? []))
    }
    history.last = page.at(-1) ?? history.last
  }
  return history
}

/** Returns the latest recorded state of each file. Undefined means that the file did not exist. */
function finalStates(patches: readonly PatchPart[]): Map<string, FileVersion | undefined> {
  const states = new Map<string, FileVersion | undefined>()
  /** Files whose latest changes were undone. Undoing goes back to the state before the first of these changes. */
  const undone = new Set<string>()
  for (const part of patches)
    for (const { path, before, after, left } of part.files) {
      const isUndone = part.undone === true && !left
      if (isUndone && undone.has(path)) continue
      states.set(path, isUndone ? before : after)
      if (isUndone) undone.add(path)
      else undone.delete(path)
    }
  return states
}

interface Roots {
  from: string
  to: string
}

/** Restores the recorded states of the files in the new worktree. Follows no links. */
async function restore(
  states: ReadonlyMap<string, FileVersion | undefined>,
  { from, to }: Roots,
  { contents, trackTemporary }: OpenWorkspaceOptions,
): Promise<{ files: RestoredFile[]; missing: string[] }> {
  const missing: string[] = []
  const changes: FileChange[] = []
  for (const [path, after] of states) {
    const place = join(to, relative(from, path))
    if (!isInside(path, from) || !isInside(place, to)) {
      missing.push(`${path} is outside the worktree, so it was not restored.`)
      continue
    }
    // A restored hook or setting would take effect in the next git command.
    if (/(?:^|\/)\.git(?:\/|$)/i.test(relative(to, place))) {
      missing.push(`${relative(to, place)} belongs to git, so it was not restored.`)
      continue
    }
    const before = await versionAt(place)
    if (before?.hash !== after?.hash || before?.mode !== after?.mode || before?.link !== after?.link)
      changes.push({ path: place, before, after, directory: after ? undefined : dirname(place) })
  }
  if (changes.length === 0) return { files: [], missing }
  const choice = { direction: "redo", others: true, contents, trackTemporary } as const
  const { files, refused } = await putBack(changes, choice).catch((error: unknown) => {
    // None of the files can be restored.
    if (!TackleError.isInstance(error) || !("refused" in error)) throw error
    return { files: [], refused: error.refused as { path: string; why: string }[] }
  })
  for (const { path, why } of refused)
    missing.push(
      `${relative(to, path)} ${why === "not-kept" ? "was changed, but its content is no longer stored" : "could not be restored"}.`,
    )
  return { files, missing }
}

/** Returns the version of a file or link, or undefined if it does not exist. */
async function versionAt(path: string): Promise<FileVersion | undefined> {
  const stats = await unlessMissing(lstat(path))
  if (stats?.isSymbolicLink()) return { hash: hashOf(await readlink(path, "buffer")), link: true }
  if (!stats?.isFile()) return undefined
  return { hash: hashOf(await readFile(path)), mode: stats.mode & 0o7777 }
}

/**
 * Describes the changes that cannot be rebuilt: commits that were not pushed, and uncommitted files that the session
 * did not change.
 */
function describeGaps(
  { root, git: { unpushed, uncommitted, more } }: Recipe,
  states: ReadonlyMap<string, FileVersion | undefined>,
): string[] {
  const lost = uncommitted.filter((path) => !states.has(join(root, path)))
  return [
    ...(unpushed > 0 ? [`${were(unpushed, "commit")} not pushed when the session was created.`] : []),
    ...lost.map((path) => `${path} was not committed when the session was created.`),
    ...(more === undefined ? [] : [`${were(more, "more file")} not committed when the session was created.`]),
  ]
}

function were(count: number, noun: string): string {
  return `${counted(count, noun)} ${count === 1 ? "was" : "were"}`
}

function relocate(session: Session, to: string, host: string): Session {
  const directory = isInside(session.directory, session.worktree)
    ? join(to, relative(session.worktree, session.directory))
    : to
  const { workspace } = session
  const moved = workspace && { ...workspace, host, root: to }
  return { ...session, directory, worktree: to, workspace: moved }
}

/** Returns the part with the paths of the new worktree, so that its turn can be undone there. */
function rebased(part: PatchPart, { from, to }: Roots): PatchPart {
  const move = (path: string) => (isInside(path, from) ? join(to, relative(from, path)) : path)
  return {
    ...part,
    files: part.files.map((file) => ({
      ...file,
      path: move(file.path),
      ...(file.directory !== undefined && { directory: move(file.directory) }),
    })),
  }
}

/** Maximum number of lines about missing files in the message to the model. */
const maxTold = 50

/** Returns the changes that add a message about the move. A session without messages needs no message. */
function noteChanges(
  { id, agent }: Session,
  last: MessageWithParts | undefined,
  { from, to, missing }: Roots & { missing: readonly string[] },
): Change[] {
  if (!last) return []
  const { message } = last
  continueIdsAfter(message.id)
  const messageID = newId("msg")
  const more = missing.length > maxTold ? [`- and ${missing.length - maxTold} more`] : []
  const gaps = [...missing.slice(0, maxTold).map((line) => `- ${line}`), ...more].join("\n")
  const text =
    `The worktree of this session, ${from}, was rebuilt in ${to}. ` +
    "Earlier messages name the old paths. Read a file again before you change it. Background commands have ended." +
    (missing.length > 0 ? ` The following changes could not be rebuilt:\n${gaps}` : "")
  return [
    {
      kind: "message",
      message: {
        id: messageID,
        sessionID: id,
        role: "user",
        time: { created: currentTime() },
        agent,
        model: message.model,
      },
    },
    {
      kind: "part",
      part: { id: newId("prt"), sessionID: id, messageID, type: "text", text, synthetic: true },
    },
  ]
}

/** Describes the workspaces that a worker can open. */
export interface WorkspaceOffer {
  host: string
  /** Directories with projects on this machine. */
  directories: readonly string[]
  /** True if the worker can clone and rebuild worktrees. */
  clones: boolean
}

/** Returns true if a worker with this offer can open a session's workspace, in place or by rebuilding it. */
export function canOpenWorkspace({ directory, workspace }: Session, offer: WorkspaceOffer): boolean {
  const isHere = workspace === undefined || workspace.host === offer.host
  if (isHere && offer.directories.some((root) => isInside(directory, root))) return true
  return offer.clones && workspace?.git !== undefined && shareableRemote(workspace.git.remote) !== undefined
}
