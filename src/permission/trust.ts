import { randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative, sep } from "node:path"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { directoryEntries, isFile } from "../util/file-system.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { realPath } from "../util/paths.ts"
import {
  type FileHash,
  hashDependencies,
  hashFile,
  hashLines,
  hashTree,
  type PackageDependencies,
  type TreeHash,
} from "./trust-hash.ts"

/**
 * The items that the user trusts, keyed by the real path of their worktree. Nested worktrees and other worktrees of the
 * same repository do not inherit trust.
 */
export interface Trust {
  /**
   * A message for the user that explains why the trust file cannot be used. While this message is set, nothing is
   * trusted.
   */
  readonly problem: string | undefined
  /**
   * Checks the items. `changed` lists the items that are new or have changed since they were trusted. `trusted` is true
   * if `changed` is empty.
   */
  isTrusted(
    directoryRealPath: string,
    items: readonly TrustItem[],
  ): { trusted: boolean; changed: TrustItem[] }
  /**
   * Returns the state of an item. `changed` means that the item was trusted with different content, or that its content
   * cannot be read now.
   */
  state(directoryRealPath: string, item: TrustItem): "trusted" | "changed" | "new"
  /**
   * Trusts these items in the directory. Keeps the other trusted items, because the user sees only items on the path to
   * the working directory. Replaces an invalid trust file. Throws `TackleError` if the file cannot be written.
   */
  trust(directoryRealPath: string, items: readonly TrustItem[]): void
  /**
   * Revokes trust in these items, or in all items in the directory. Throws `TackleError` if the file cannot be written.
   */
  revoke(directoryRealPath: string, items?: readonly ItemName[]): void
  /** Lists the trusted items in the directory, including items that have changed since, sorted by path. */
  known(directoryRealPath: string): ItemName[]
}

type ItemName = Pick<TrustItem, "kind" | "path">

/** Hashes of the trusted items, keyed by directory and then by kind and path. */
type Directories = Map<string, Map<string, string>>

/** Opens `<data>/trust.json`. If the file is missing, nothing is trusted. Never throws. */
export function openTrust(path: string): Trust {
  let { directories, problem } = load(path)

  function state(directory: string, item: TrustItem): "trusted" | "changed" | "new" {
    const known = directories.get(directory)?.get(itemKey(item))
    if (known === undefined) return "new"
    return item.hash !== "" && known === item.hash ? "trusted" : "changed"
  }

  function change(edit: (current: Directories) => void): void {
    // Reads the file again to keep changes made by other processes.
    const current = load(path).directories
    edit(current)
    save(path, current)
    directories = current
    problem = undefined
  }

  return {
    get problem() {
      return problem
    },
    state,
    isTrusted(directory, items) {
      const changed = items.filter((item) => state(directory, item) !== "trusted")
      return { trusted: changed.length === 0, changed }
    },
    trust(directory, items) {
      change((current) => {
        const before = current.get(directory) ?? []
        current.set(
          directory,
          new Map([...before, ...items.map((item) => [itemKey(item), item.hash] as const)]),
        )
      })
    },
    revoke(directory, items) {
      change((current) => {
        for (const item of items ?? []) current.get(directory)?.delete(itemKey(item))
        if (items === undefined || current.get(directory)?.size === 0) current.delete(directory)
      })
    },
    known(directory) {
      const names = [...(directories.get(directory)?.keys() ?? [])].flatMap((key) => nameOf(key) ?? [])
      return names.sort((a, b) => (a.path < b.path ? -1 : 1))
    },
  }
}

function itemKey({ kind, path }: ItemName): string {
  return `${kind}:${path}`
}

/** Parses an item's key. Returns undefined for a kind that was added by a later version of Tackle. */
function nameOf(key: string): ItemName | undefined {
  const [, written, path] = /^(\w+):(.+)$/s.exec(key) ?? []
  const kind = trustKinds.find((known) => known === written)
  return kind === undefined || path === undefined ? undefined : { kind, path }
}

function load(path: string): { directories: Directories; problem?: string } {
  const directories: Directories = new Map()
  const failed = (reason: string) => ({
    directories: new Map(),
    problem: `${path} cannot be used (${reason}), so nothing is trusted. Delete it, then run "tackle trust" in each project that you trust.`,
  })
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (error) {
    const missing = ["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")
    return missing ? { directories } : failed(errorMessage(error))
  }
  const parsed = parseJson(text)
  if (!parsed.ok) return failed("invalid JSON")
  const listed = isRecord(parsed.value) && parsed.value.version === 1 ? parsed.value.directories : undefined
  if (!isRecord(listed)) return failed("expected version 1")
  for (const [directory, items] of Object.entries(listed)) {
    if (!isRecord(items)) return failed("an entry is not a list of hashes")
    const hashes = Object.entries(items).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string",
    )
    directories.set(directory, new Map(hashes))
  }
  return { directories }
}

/** Writes the file atomically, readable only by its owner. */
function save(path: string, directories: Directories): void {
  const listed = Object.fromEntries(
    [...directories].map(([name, items]) => [name, Object.fromEntries(items)]),
  )
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const text = `${JSON.stringify({ version: 1, directories: listed }, null, 2)}\n`
    writeFileSync(temporary, text, { mode: 0o600, flag: "wx" })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw new TackleError(
      `${path} cannot be written (${errorMessage(error)}). Check the permissions of its directory and the free disk space.`,
      { code: "trust.write", recoverable: false, cause: error },
    )
  }
}

/** The kinds of project files that must be trusted. */
export const trustKinds = ["config", "tool", "plugin", "skill", "agent", "command"] as const

/** A file or package in a project that can change what Tackle does. */
export interface TrustItem {
  kind: (typeof trustKinds)[number]
  /** Path relative to the root of the worktree, separated by `/`. For a package, `npm:` and its name. */
  path: string
  /** SHA-256 in hex. Empty if the content cannot be read. The item is then never trusted. */
  hash: string
}

/** An item that exists in the project. */
export interface FoundItem extends TrustItem {
  /** Absolute path of the file, or of the directory of a package. */
  file: string
  /**
   * SHA-256 in hex of each file of a tool, plugin, skill or package, keyed by real path. These files can run once the
   * item is trusted. Empty for other kinds. `dependencies` contains the files of dependencies.
   */
  contents: ReadonlyMap<string, string>
  /** The dependencies of a package. The hash also covers their modules. */
  dependencies?: PackageDependencies
}

/**
 * The locations that {@link collectTrustItems} searches. Paths are absolute and, except for packages, inside the
 * worktree.
 */
export interface TrustSources {
  /**
   * Config files. The hash also covers included files. The caller computes the hash, because finding the included files
   * requires a parser.
   */
  config: readonly { path: string; hash: string }[]
  toolFolders: readonly string[]
  pluginFolders?: readonly string[]
  /**
   * Packages that the config names as plugins, with their directories. For `provided`, see {@link hashDependencies}.
   */
  packages?: readonly { name: string; root: string; provided?: readonly string[] }[]
  /** Paths of `SKILL.md` files. */
  skillFiles?: readonly string[]
  /** Paths of the Markdown files that define agents. */
  agents?: readonly string[]
  commands?: readonly string[]
}

/**
 * Lists the trust items in a project, sorted by path.
 *
 * The hash of a tool or plugin file also covers the subdirectories of its folder, because the file can import from
 * them. Each file directly in the folder has its own hash. The hash of a skill covers its directory. The hash of a
 * package covers its directory and the modules of its dependencies. Directories named `node_modules` are excluded.
 */
export function collectTrustItems(worktree: string, sources: TrustSources): FoundItem[] {
  const item = (
    kind: TrustItem["kind"],
    file: string,
    hash: string,
    contents: readonly FileHash[],
  ): FoundItem => ({ kind, path: trustPath(worktree, file), hash, file, contents: new Map(contents) })
  const single = (kind: TrustItem["kind"], paths: readonly string[] = []) =>
    paths.filter(isFile).map((path) => item(kind, path, hashFile(path), []))
  /** Creates an item for a file whose hash also covers a directory tree. */
  const withTree = (kind: TrustItem["kind"], path: string, { lines, contents }: TreeHash) => {
    const own = hashFile(path)
    const hash = own === "" || lines.length === 0 ? own : hashLines([own, ...lines])
    return item(kind, path, hash, own === "" ? [] : [[realPath(path), own], ...contents])
  }
  const codeIn = (kind: "tool" | "plugin", folder: string) => {
    const entries = directoryEntries(folder)
    const directories = entries.filter((entry) => entry.isDirectory())
    const tree = hashTree(
      directories.map(({ name }) => join(folder, name)),
      worktree,
    )
    const files = entries.map((entry) => join(folder, entry.name)).filter(isFile)
    return files.map((path) => withTree(kind, path, tree))
  }
  const packages = (sources.packages ?? []).map(({ name, root, provided }): [string, FoundItem] => {
    const { lines, contents } = hashTree([root], root)
    const dependencies = hashDependencies(root, provided)
    const hash = lines.length === 0 ? "" : hashLines([...lines, ...dependencies.lines])
    const path = packageItem(name)
    return [path, { ...item("plugin", root, hash, contents), path, dependencies }]
  })
  return [
    ...sources.config.map(({ path, hash }) => item("config", path, hash, [])),
    ...single("agent", sources.agents),
    ...single("command", sources.commands),
    ...sources.toolFolders.flatMap((folder) => codeIn("tool", folder)),
    ...(sources.pluginFolders ?? []).flatMap((folder) => codeIn("plugin", folder)),
    // Several config files can name the same package.
    ...new Map(packages).values(),
    // `hashTree` does not hash the target of a link, so `withTree` hashes `SKILL.md` itself.
    ...(sources.skillFiles ?? []).map((path) => withTree("skill", path, hashTree([dirname(path)], worktree))),
  ].sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Returns the `path` of a {@link TrustItem} for a package. */
export function packageItem(name: string): string {
  return `npm:${name}`
}

/** Returns the `path` of a {@link TrustItem} for a file in the worktree. */
export function trustPath(worktree: string, path: string): string {
  return relative(worktree, path).split(sep).join("/")
}
