import { configDirectories, possibleConfigDirectories } from "../config/config-directories.ts"
import { projectTrustItems } from "../config/project-trust-items.ts"
import { openTrust } from "../permission/trust.ts"
import type { FoundItem, TrustItem } from "../permission/trust-items.ts"
import { findToolFiles, isToolFile, scriptsWithoutRight, toolPlaces } from "../registry/files.ts"
import type { ToolFileSource } from "../registry/live-tool-files.ts"
import type { ToolFile } from "../registry/load-tool-file.ts"
import type { RegistryProblem } from "../registry/problems.ts"
import { dataPlaces } from "../runtime/data-directory.ts"
import { warn } from "./notice.ts"
import type { Place } from "./place.ts"
import { trustedItems } from "./trusted-items.ts"
import { quoted } from "./view/allow-hint.ts"

/**
 * Custom tools of the person, and those of the project, which holds what lies in its work tree, that are trusted: of these
 * only what was trusted may run. When
 * something changes they are looked for again, and trust is asked anew: what `--trust` covers is what was there when the
 * run began.
 */
export function toolFilesOf(place: Place): ToolFileSource {
  const directories = possibleConfigDirectories(place).map(({ path }) => path)
  let begun = false
  return {
    watched: () => [...toolPlaces(directories), dataPlaces(place.dataDirectory).trust],
    async find() {
      // What the start has found, it has also told of.
      if (begun) return findAgain(place)
      begun = true
      return { files: filesOf(place, trustedItems(place, "tool")), problems: withoutRight(place) }
    },
  }
}

async function findAgain(place: Place): ReturnType<ToolFileSource["find"]> {
  const trust = openTrust(dataPlaces(place.dataDirectory).trust)
  if (trust.problem) warn(trust.problem)
  const items = (await projectTrustItems(place)).filter(
    ({ kind, file }) => kind === "tool" && isToolFile(file),
  )
  const atStart = new Map(place.items.map((item) => [keyOf(item), item.hash]))
  const isTrusted = (item: FoundItem) =>
    (place.trustedForRun && item.hash !== "" && atStart.get(keyOf(item)) === item.hash) ||
    trust.isTrusted(place.worktree, [item]).trusted
  const toldAtStart = new Set(place.untrusted.map((item) => `${keyOf(item)} ${item.hash}`))
  const untrusted = items.filter((item) => !isTrusted(item))
  const news = untrusted.filter((item) => !toldAtStart.has(`${keyOf(item)} ${item.hash}`))
  return {
    files: filesOf(place, items.filter(isTrusted)),
    problems: [
      ...withoutRight(place),
      ...news.map((item) => {
        const wasThere = atStart.has(keyOf(item)) || trust.state(place.worktree, item) === "changed"
        return untrustedProblem(item, wasThere)
      }),
    ],
  }
}

/** What a person wrote as a tool and forgot to let run. */
function withoutRight(place: Place): RegistryProblem[] {
  const directories = configDirectories(place).map(({ path }) => path)
  return scriptsWithoutRight(directories).map((file) => ({
    file,
    message: `it is a script that may not be run, so it is no tool. To make it one: chmod +x ${/^[\w./-]+$/.test(file) ? file : quoted(file)}`,
  }))
}

function untrustedProblem({ file }: FoundItem, wasThere: boolean): RegistryProblem {
  const what = wasThere ? "it has changed, and is not trusted as it is now" : "it is new and not trusted"
  return { file, message: `${what}: its tools are not there. \`tackle trust\` shows and enables them.` }
}

function filesOf(place: Place, trusted: readonly FoundItem[]): ToolFile[] {
  const pinned = new Map(trusted.flatMap(({ contents }) => [...contents]))
  const files = new Set(trusted.map(({ file }) => file))
  return configDirectories(place).flatMap(({ path: directory, scope, exposed }) => {
    const found = findToolFiles([directory])
    if (scope === "user" && !exposed) return found.map((path) => ({ path }))
    // One that came since the items were looked at is not among them.
    return found.filter((path) => files.has(path)).map((path) => ({ path, pinned }))
  })
}

function keyOf({ kind, path }: TrustItem): string {
  return `${kind}:${path}`
}
