import { dirname, join } from "node:path"
import type { Ruleset } from "../schema/permission.ts"
import { realPath } from "../util/paths.ts"

/** Where a session keeps its plan. Undefined for one of a subagent, which does not plan, and without plan mode. */
export type PlanFile = (session: { id: string; parentID?: string }) => string | undefined

/**
 * Plans lie in a folder for each session below `root`, not in the project, of which planning changes nothing. Without a
 * root there is no plan mode.
 */
export function createPlanFiles(root: string | undefined): PlanFile {
  return ({ id, parentID }) =>
    root === undefined || parentID !== undefined ? undefined : join(realPath(root), id, "plan.md")
}

/** The one file that an agent in plan mode may write, without a question. */
export function planRules(file: string | undefined): Ruleset {
  if (file === undefined) return []
  const rule = { action: "allow", source: { file: "the plan file" } } as const
  return [
    { ...rule, permission: "edit", pattern: file },
    { ...rule, permission: "external_directory", pattern: `${dirname(file)}/*` },
  ]
}
