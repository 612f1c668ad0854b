import type { Action } from "../schema/permission.ts"
import { readClaudeSettings } from "./claude-settings.ts"
import { readCodexSettings } from "./codex-settings.ts"
import type { ForeignSettings } from "./foreign-settings.ts"
import type { Location } from "./location.ts"

/**
 * Reads the settings of Claude Code and Codex. The `ask` rules precede the `deny` rules. Does not throw for invalid
 * files, but returns their problems.
 */
export async function readForeignSettings(location: Location): Promise<ForeignSettings> {
  const found: ForeignSettings = { rules: [], disabledServers: [], problems: [], warnings: [], unused: [] }
  await readClaudeSettings(location, found)
  await readCodexSettings(location, found)
  const having = (action: Action) => found.rules.filter((rule) => rule.action === action)
  // The last matching rule decides, and in the other programs a `deny` always takes precedence.
  return { ...found, rules: [...having("ask"), ...having("deny")] }
}
