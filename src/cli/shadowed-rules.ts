import { type ShadowedRule, shadowedRules } from "../permission/shadowed-rules.ts"
import type { Rule } from "../schema/permission.ts"
import type { Place } from "./place.ts"
import { layersOf } from "./rule-layers.ts"

/** The rules of the config that can never decide: for everyone, and of each agent's own. */
export function shadowedConfigRules(place: Place): ShadowedRule[] {
  const layers = layersOf(place, {})
  const ofAgents = agentRulesets(place).flatMap((rules) => {
    const own = new Set(rules)
    // What an agent's rules make of the others holds for that agent alone.
    return shadowedRules([...layers, { name: "agent", rules }]).filter(({ rule }) => own.has(rule))
  })
  return [...shadowedRules(layers), ...ofAgents]
}

/** What the config says of single agents: for each of its origins the rules of each agent, in rising precedence. */
export function agentRulesets({ config }: Pick<Place, "config">): Rule[][] {
  const { agentPermission, projectAgentPermission, environmentAgentPermission } = config
  return [agentPermission, projectAgentPermission, environmentAgentPermission].flatMap((rules) =>
    Object.values(rules),
  )
}

/** Where a rule stands: `tackle.json:4`. */
export function placeOfRule({ source }: Rule): string {
  if (source === undefined) return ""
  return source.line === undefined ? source.file : `${source.file}:${source.line}`
}
