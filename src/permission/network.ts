import type { Network } from "../sandbox/bounds.ts"
import type { Rule } from "../schema/permission.ts"
import { namedRules } from "./named-only.ts"
import { judge, type Policy } from "./policy.ts"

/** No host has this name: only a rule for all of them matches it. */
const unnamed = "\u0000".repeat(16)

/**
 * What the rules of permission `network` open to a sandboxed command, their patterns being host names. What asks stays
 * closed, since a connection cannot wait for a person. Only rules that name the permission count: `"*": "allow"` lets
 * commands run, and says nothing of where their data may go.
 */
export function networkOf(policy: Policy): Network {
  const layers = policy.layers.map(({ name, rules }) => ({ name, rules: rules.filter(isAbout) }))
  const rules = [...layers.flatMap((layer) => layer.rules), ...(policy.ceiling ?? []).filter(isAbout)]
  const allows = (host: string) => judge(policy, "network", [host], namedRules("network")).action === "allow"
  if (!rules.some((rule) => rule.action === "allow")) return "closed"
  if (allows(unnamed) && rules.every((rule) => rule.action === "allow" || rule.pattern === "*")) return "open"
  return { key: JSON.stringify([layers, policy.ceiling]), allows }
}

function isAbout({ permission }: Rule): boolean {
  return permission === "network"
}
