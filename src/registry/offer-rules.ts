import { isOffered } from "../permission/policy.ts"
import type { RegisteredTool, ToolScope } from "./registered-tool.ts"
import { permissionOf } from "./tool-permission.ts"

/** Why tools are not offered, in words for people and models. */
export interface OfferRules {
  /** By the rules, the config or the circumstances; undefined where nothing is against it. */
  against(entry: RegisteredTool, scope: ToolScope): string | undefined
  /** The same by the rules and the config alone, and without tools that no model ever hears of. */
  withheld(id: string, scope: ToolScope): string | undefined
}

/** `disabled` are ids that the config switched off. */
export function createOfferRules(disabled: ReadonlySet<string>): OfferRules {
  function ruledOut(id: string, scope: ToolScope): string | undefined {
    if (disabled.has(id)) return "switched off in the configuration (tools)"
    const lacking = scope.lacking?.[id]
    if (lacking !== undefined) return lacking
    if (!isOffered(scope.policy, permissionOf(id)))
      return `no rule could ever allow it for the agent ${scope.agent}`
    const served = serves[id]
    return served !== undefined && ruledOut(served, scope) !== undefined
      ? `it only serves ${served}, which is not offered`
      : undefined
  }

  return {
    against(entry, scope) {
      const { id } = entry.tool
      if (internal.has(id)) return "answers malformed calls; no model is offered it"
      return ruledOut(id, scope) ?? entry.unavailable?.(scope)
    },
    withheld: (id, scope) => (internal.has(id) ? undefined : ruledOut(id, scope)),
  }
}

/** Ids that the engine itself answers and no model is offered. */
const internal: ReadonlySet<string> = new Set(["invalid"])

/** Tools that have nothing to do without another one. */
const serves: Readonly<Record<string, string>> = Object.assign(Object.create(null), { job: "bash" })
