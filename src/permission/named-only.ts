import type { JudgeOptions } from "./policy.ts"

const namedOnly: ReadonlySet<string> = new Set(["network", "private_network", "sandbox_escape"])

/**
 * What may allow a permission that is about the sandbox or the network around this machine: a rule that names it.
 * `"*": "allow"` is a word about what tools do, not about what holds them in. Nothing for every other permission.
 */
export function namedRules(permission: string): JudgeOptions {
  return namedOnly.has(permission) ? { counts: (rule) => rule.permission === permission } : {}
}
