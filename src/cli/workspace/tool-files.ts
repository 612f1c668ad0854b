import { configDirectories, possibleConfigDirectories } from "../../config/location.ts"
import { dataPaths } from "../../engine/data-directory.ts"
import type { FoundItem } from "../../permission/trust.ts"
import { findToolFiles, isToolFile, nonExecutableScripts, watchedToolPaths } from "../../registry/files.ts"
import type { ToolFileSource } from "../../registry/live-tool-files.ts"
import type { ToolFile } from "../../registry/load-tool-file.ts"
import type { RegistryProblem } from "../../registry/registered-tool.ts"
import { shellWord } from "../../util/words.ts"
import { describeChange, recheckTrust, trustHint, type UntrustedChange } from "./recheck-trust.ts"
import { trustedItems, type Workspace } from "./workspace.ts"

/**
 * Returns a source for the user's custom tools and the project's trusted tools. All files inside the worktree belong to
 * the project. Only trusted content runs. After a change, the source checks files and trust again.
 */
export function toolFilesOf(workspace: Workspace): ToolFileSource {
  const directories = possibleConfigDirectories(workspace).map(({ path }) => path)
  let begun = false
  return {
    watched: () => [...watchedToolPaths(directories), dataPaths(workspace.dataDirectory).trust],
    async find() {
      if (begun) return findAgain(workspace)
      begun = true
      // Untrusted files are reported when the engine is opened.
      return {
        files: filesOf(workspace, trustedItems(workspace, "tool")),
        problems: notExecutable(workspace),
      }
    },
  }
}

async function findAgain(workspace: Workspace): ReturnType<ToolFileSource["find"]> {
  const { trusted, news } = await recheckTrust(workspace, ["tool"], ({ file }) => isToolFile(file))
  return {
    files: filesOf(workspace, trusted),
    problems: [...notExecutable(workspace), ...news.map(untrustedProblem)],
  }
}

/** Returns a problem for each script that is not executable. */
function notExecutable(workspace: Workspace): RegistryProblem[] {
  const directories = configDirectories(workspace).map(({ path }) => path)
  return nonExecutableScripts(directories).map((file) => ({
    file,
    message: `the script is not executable, so it is not offered as a tool. To fix this: chmod +x ${shellWord(file)}`,
  }))
}

function untrustedProblem(news: UntrustedChange): RegistryProblem {
  return {
    file: news.item.file,
    message: `${describeChange(news)}, so its tools are unavailable. ${trustHint}`,
  }
}

function filesOf(workspace: Workspace, trusted: readonly FoundItem[]): ToolFile[] {
  const pinned = new Map(trusted.flatMap(({ contents }) => [...contents]))
  const files = new Set(trusted.map(({ file }) => file))
  return configDirectories(workspace).flatMap(({ path: directory, scope, exposed }) => {
    const found = findToolFiles([directory])
    if (scope === "user" && !exposed) return found.map((path) => ({ path }))
    // Excludes files that were added after the trust items were collected.
    return found.filter((path) => files.has(path)).map((path) => ({ path, pinned }))
  })
}
