import { projectTrustItems } from "../../config/project-trust-items.ts"
import { dataPaths } from "../../engine/data-directory.ts"
import { type FoundItem, openTrust, type TrustItem } from "../../permission/trust.ts"
import { realPath, resolvePath } from "../../util/paths.ts"
import { warn } from "../process/notice.ts"
import type { Workspace } from "./workspace.ts"

/** The trust in a project's items at the time of the check. */
export interface CurrentTrust {
  /** Trusted items of the requested kinds, in their current state. */
  trusted: FoundItem[]
  /** Untrusted items that were not reported at startup. */
  news: UntrustedChange[]
  isTrusted(item: TrustItem): boolean
}

/** An untrusted item that was added or changed since startup. */
export interface UntrustedChange {
  item: FoundItem
  /** Whether the item was changed. True if it existed at startup or was trusted earlier, false if it was added. */
  changed: boolean
}

/**
 * Finds the project's items of these kinds for which `counts` returns true, and reads the trust file again. `--trust`
 * applies only to items that have not changed since startup. Ignores a config file that can no longer be parsed.
 */
export async function recheckTrust(
  workspace: Workspace,
  kinds: readonly TrustItem["kind"][],
  counts: (item: FoundItem) => boolean = () => true,
): Promise<CurrentTrust> {
  const trust = openTrust(dataPaths(workspace.dataDirectory).trust)
  if (trust.problem) warn(trust.problem)
  const atStart = new Map(workspace.items.map((item) => [keyOf(item), item.hash]))
  const isTrusted = (item: TrustItem) =>
    (workspace.trustedForRun && item.hash !== "" && atStart.get(keyOf(item)) === item.hash) ||
    trust.isTrusted(workspace.worktree, [item]).trusted
  const items = (await projectTrustItems(workspace, kinds)).filter(counts)
  const reportedAtStart = new Set(workspace.untrusted.map((item) => `${keyOf(item)} ${item.hash}`))
  const untrusted = items.filter((item) => !isTrusted(item))
  const news = untrusted.filter((item) => !reportedAtStart.has(`${keyOf(item)} ${item.hash}`))
  return {
    trusted: items.filter(isTrusted),
    news: news.map((item) => ({
      item,
      changed: atStart.has(keyOf(item)) || trust.state(workspace.worktree, item) === "changed",
    })),
    isTrusted,
  }
}

/**
 * Trusts a project file that this command has written for the user, if the file is new or was trusted before. Returns
 * whether the file is trusted now.
 */
export async function keepTrust(workspace: Workspace, file: string): Promise<boolean> {
  const { trust, worktree, items } = workspace
  const isFile = ({ path }: FoundItem) => realPath(resolvePath(path, worktree)) === realPath(file)
  const before = items.filter(isFile)
  if (before.some((item) => trust.state(worktree, item) !== "trusted")) return false
  const written = (await projectTrustItems(workspace)).filter(isFile)
  if (written.length > 0) trust.trust(worktree, written)
  return true
}

/** Returns the beginning of a message about the item. */
export function describeChange({ changed }: UntrustedChange): string {
  return changed ? "it has changed and is not trusted" : "it is new and not trusted"
}

/** Last sentence of a message about an untrusted item. */
export const trustHint = "Run `tackle trust` to review and trust it."

function keyOf({ kind, path }: TrustItem): string {
  return `${kind}:${path}`
}
