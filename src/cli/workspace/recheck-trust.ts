import { projectTrustItems } from "../../config/project-trust-items.ts"
import { dataPaths } from "../../engine/data-directory.ts"
import { openTrust } from "../../permission/trust.ts"
import type { FoundItem, TrustItem } from "../../permission/trust-items.ts"
import { warn } from "../process/notice.ts"
import type { Workspace } from "./workspace.ts"

/** What of a project is trusted while a run goes on. */
export interface CurrentTrust {
  /** Of the kinds that were asked about, as they are now. */
  trusted: FoundItem[]
  /** Those that are not, without those of which the start has told. */
  news: UntrustedChange[]
  isTrusted(item: TrustItem): boolean
}

/** An item that came or changed while a run went on. */
export interface UntrustedChange {
  item: FoundItem
  /** It was there when the run began, or was trusted once. */
  changed: boolean
}

/**
 * Looks at the project's items of these kinds anew, and asks the trust file anew. What `--trust` covers is what was there
 * when the run began. A config that cannot be parsed now plays no part.
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

/** The beginning of a line about it. */
export function describeChange({ changed }: UntrustedChange): string {
  return changed ? "it has changed, and is not trusted as it is now" : "it is new and not trusted"
}

/** The end of such a line. */
export const trustHint = "`tackle trust` shows and enables them."

function keyOf({ kind, path }: TrustItem): string {
  return `${kind}:${path}`
}
