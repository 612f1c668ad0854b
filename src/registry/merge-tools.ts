import { type RegistryProblem, report } from "./problems.ts"
import { describeSource, type RegisteredTool } from "./registered-tool.ts"

/**
 * The tools by their ids, in the order given. Of two with one id the first stays, unless `override` names the id; what is
 * left out becomes one of the `problems`.
 */
export function mergeTools(
  tools: readonly RegisteredTool[],
  override: ReadonlySet<string>,
  problems: RegistryProblem[],
): Map<string, RegisteredTool> {
  const byId = new Map<string, RegisteredTool>()
  for (const entry of tools) {
    const { id } = entry.tool
    if (permissionNames.has(id)) {
      report(problems, entry, `"${id}" is the name of a permission and cannot be that of a tool. Rename it.`)
      continue
    }
    const first = byId.get(id)
    if (first && !override.has(id)) {
      report(
        problems,
        entry,
        `there are two tools named "${id}": one from ${describeSource(first.source)}, one from ${describeSource(entry.source)}. ` +
          `The first is kept. Rename the second, or put "override": ["${id}"] into the configuration to let it replace the first.`,
      )
      continue
    }
    byId.set(id, entry)
  }
  return byId
}

/**
 * Permissions that are no tool's id. Rules for them were not written for a tool of that name, and some allow all: it is
 * left out.
 */
const permissionNames: ReadonlySet<string> = new Set(
  "todo external_directory doom_loop network private_network sandbox_escape".split(" "),
)
