import { existsSync, realpathSync, statSync } from "node:fs"
import { resolve } from "node:path"
import { ConfigError, type Problem } from "../../config/errors.ts"
import { type LoadedConfig, loadConfig } from "../../config/load.ts"
import { findWorktree, type Location } from "../../config/location.ts"
import { projectTrustItems } from "../../config/project-trust-items.ts"
import { dataPaths, defaultDataDirectory } from "../../engine/data-directory.ts"
import { readSecrets } from "../../engine/secrets.ts"
import { createCredentials } from "../../model/credentials.ts"
import { type FoundItem, openTrust, type Trust, type TrustItem } from "../../permission/trust.ts"
import { createSecretMask, type SecretMask } from "../../tool/secrets.ts"
import { UsageError } from "../../util/errors.ts"
import { homeDirectory } from "../../util/paths.ts"
import { createLog, type Log } from "../process/log.ts"
import { warn } from "../process/notice.ts"
import { reserveStdout } from "../process/stdout.ts"

/** Flags for every command that works in a project. */
export interface WorkspaceFlags {
  dir?: string
  trust?: boolean
  verbose?: boolean
}

/** Flags for a command that prints text or JSON. */
export interface FormatFlags extends WorkspaceFlags {
  format: "text" | "json"
}

/** The input of a command from flags, the process, the disk and the environment. */
export interface Workspace extends Location {
  dataDirectory: string
  config: LoadedConfig
  /**
   * Problems that caused config sections to be ignored. Always empty unless {@link openWorkspaceWithProblems} is used.
   */
  problems: readonly Problem[]
  trust: Trust
  /**
   * Whether the user trusts the project in its current state, by `tackle trust` or `--trust`. Without `--trust`,
   * false for a project without items.
   */
  trusted: boolean
  /** Whether `--trust` is set. This flag applies only to items as they were found at startup. */
  trustedForRun: boolean
  /** Items in the project that need trust. */
  items: readonly FoundItem[]
  /** Items that are not trusted in their current state. Empty with `--trust`. */
  untrusted: readonly TrustItem[]
  /** Time at which the workspace was read, in ms since the epoch. */
  readAt: number
  log: Log
  /** Mask with the workspace's secrets. The engine adds secrets that it learns later. */
  mask: SecretMask
  /** Masks secrets in a value that is shown or logged. */
  hide: <T>(value: T) => T
}

/**
 * Reads config and trust for the directory given by the flags. Reports config warnings. Throws `UsageError` for config
 * problems. The default environment is the environment of this process.
 */
export async function openWorkspace(
  flags: WorkspaceFlags,
  environment?: NodeJS.ProcessEnv,
): Promise<Workspace> {
  const workspace = await openWorkspaceWithProblems(flags, environment)
  for (const warning of workspace.config.warnings) warn(warning)
  if (workspace.problems.length > 0) throw new ConfigError(workspace.problems)
  return workspace
}

/**
 * Reads config and trust like {@link openWorkspace}, but returns config problems in `problems` and ignores the affected
 * sections. Use it only for commands that do not act on the config, because a deny rule may be missing.
 */
export async function openWorkspaceWithProblems(
  flags: WorkspaceFlags,
  { ...environment }: NodeJS.ProcessEnv = process.env,
): Promise<Workspace> {
  reserveStdout()
  const readAt = Date.now()
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
  const log = createLog({ directory: places.logs, hide, echo })
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

/** Returns the directory from `--dir`, with links resolved. Throws `UsageError` if it is not an existing directory. */
export function directoryOf(given: string | undefined): string {
  const directory = fromHere(given ?? ".")
  if (!existsSync(directory)) throw new UsageError(`The --dir directory ${directory} does not exist.`)
  if (!statSync(directory).isDirectory())
    throw new UsageError(`The --dir path ${directory} is not a directory.`)
  return realpathSync(directory)
}

function fromHere(path: string): string {
  try {
    return resolve(path)
  } catch (error) {
    throw new UsageError(
      "The current directory no longer exists. Change to an existing one, or use --dir /path/to/project.",
      error,
    )
  }
}

/** Returns the items of the wanted kind that were trusted at startup. */
export function trustedItems({ items, untrusted }: Workspace, wanted: FoundItem["kind"]): FoundItem[] {
  const changed = new Set(untrusted.map(({ path }) => path))
  return items.filter(({ kind, path }) => kind === wanted && !changed.has(path))
}
