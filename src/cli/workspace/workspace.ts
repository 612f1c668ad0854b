import { existsSync, realpathSync, statSync } from "node:fs"
import { resolve } from "node:path"
import { ConfigError, type Problem } from "../../config/errors.ts"
import { type LoadedConfig, loadConfig } from "../../config/load.ts"
import { findWorktree, type Location } from "../../config/location.ts"
import { projectTrustItems } from "../../config/project-trust-items.ts"
import { dataPaths, defaultDataDirectory } from "../../engine/data-directory.ts"
import { readSecrets } from "../../engine/secrets.ts"
import { createCredentials } from "../../model/credentials.ts"
import { openTrust, type Trust } from "../../permission/trust.ts"
import type { FoundItem, TrustItem } from "../../permission/trust-items.ts"
import { createSecretMask, type SecretMask } from "../../tool/secrets.ts"
import { UsageError } from "../../util/errors.ts"
import { createLog, type Log } from "../../util/log.ts"
import { homeDirectory } from "../../util/paths.ts"
import { warn } from "../process/notice.ts"
import { reserveStdout } from "../process/stdout.ts"

/** Flags of every command with a project. */
export interface WorkspaceFlags {
  dir?: string
  trust?: boolean
  verbose?: boolean
}

/** Flags of a command that prints for people or programs. */
export interface FormatFlags extends WorkspaceFlags {
  format: "text" | "json"
}

/** Where a command runs and what it was told: all that is read from the process, the disk and the environment. */
export interface Workspace extends Location {
  dataDirectory: string
  config: LoadedConfig
  /** What is wrong in config files and does not count. Empty but for {@link openWorkspaceWithProblems}. */
  problems: readonly Problem[]
  trust: Trust
  /** The person trusts the project as it is, by `tackle trust` or `--trust`. One with no items was not asked about. */
  trusted: boolean
  /** Whether that is by `--trust`: it covers what was found, and nothing that comes later. */
  trustedForRun: boolean
  /** What the project brings, as it was found. */
  items: readonly FoundItem[]
  /** Those of the items that the person has not trusted as they are. Empty under `--trust`. */
  untrusted: readonly TrustItem[]
  /** When all this was read, in milliseconds since the epoch: what changed later is not in it. */
  readAt: number
  log: Log
  /** Knows what is secret here. The engine of the place adds what it comes to know. */
  mask: SecretMask
  /** Puts marks in the place of secrets, for what is shown and noted. */
  hide: <T>(value: T) => T
}

/**
 * Reads config and trust for the directory the flags name. Tells the warnings of the config, and throws `UsageError` for
 * what is wrong with it.
 */
export async function openWorkspace(flags: WorkspaceFlags): Promise<Workspace> {
  const workspace = await openWorkspaceWithProblems(flags)
  for (const warning of workspace.config.warnings) warn(warning)
  if (workspace.problems.length > 0) throw new ConfigError(workspace.problems)
  return workspace
}

/**
 * The same without a word on the config: what is wrong with it is in `problems`, and the sections that it stands in do not
 * count. For commands that do not act by the config: a rule that was meant to deny can be missing.
 */
export async function openWorkspaceWithProblems(flags: WorkspaceFlags): Promise<Workspace> {
  reserveStdout()
  const readAt = Date.now()
  const environment = { ...process.env }
  const directory = directoryOf(flags.dir)
  const worktree = findWorktree(directory)
  const dataDirectory = resolve(defaultDataDirectory(environment))
  const places = dataPaths(dataDirectory)
  const location: Location = { directory, worktree, home: homeDirectory(), environment }
  const echo = flags.verbose ? (line: string) => process.stderr.write(`${line}\n`) : undefined

  const trust = openTrust(places.trust)
  if (trust.problem) warn(trust.problem)
  const check = (items: readonly TrustItem[]) => trust.isTrusted(worktree, items)
  const items = await projectTrustItems({ ...location, dataDirectory })
  const untrusted = flags.trust ? [] : check(items).changed
  const trusted = flags.trust === true || (items.length > 0 && untrusted.length === 0)
  const problems: Problem[] = []
  const onProblems = (found: readonly Problem[]) => problems.push(...found)
  const config = await loadConfig({ ...location, trusted: flags.trust ? true : check, onProblems })
  const { provider: providers = {}, ...named } = config.config
  const credentials = createCredentials({ environment, authFile: places.auth })
  const stored = { environment, credentials, mcpTokens: places.mcpTokens }
  const mask = createSecretMask(await readSecrets({ ...named, providers }, stored))
  const hide = mask.value
  const log = createLog({ directory: places.logs, hide, ...(echo ? { echo } : {}) })
  const trustedForRun = flags.trust === true
  return {
    ...location,
    dataDirectory,
    config,
    problems,
    trust,
    trusted,
    trustedForRun,
    items,
    untrusted,
    readAt,
    log,
    mask,
    hide,
  }
}

/** The directory that `--dir` names, links followed. Throws `UsageError` where there is none. */
export function directoryOf(given: string | undefined): string {
  const directory = fromHere(given ?? ".")
  if (!existsSync(directory)) throw new UsageError(`There is no directory ${directory} (--dir).`)
  if (!statSync(directory).isDirectory()) throw new UsageError(`${directory} is no directory (--dir).`)
  return realpathSync(directory)
}

function fromHere(path: string): string {
  try {
    return resolve(path)
  } catch (error) {
    throw new UsageError(
      "The directory that you are in is gone. Go to one that is there, or name it: --dir /path/to/project.",
      error,
    )
  }
}

/** The items of a kind that the person trusted as they were found at the start. */
export function trustedItems({ items, untrusted }: Workspace, wanted: FoundItem["kind"]): FoundItem[] {
  const changed = new Set(untrusted.map(({ path }) => path))
  return items.filter(({ kind, path }) => kind === wanted && !changed.has(path))
}
