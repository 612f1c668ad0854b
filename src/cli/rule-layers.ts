import type { Layer } from "../permission/policy.ts"
import { parseRuleFlag } from "../permission/rules.ts"
import type { Place } from "./place.ts"

/** The layers of rules above the defaults and below what was granted, an agent's own left out. */
export function layersOf({ config }: Place, flags: RuleFlags): Layer[] {
  const { user, project, untrusted, environment } = config.permission
  return [
    { name: "user", rules: user },
    { name: "project", rules: project },
    // Last of the project's, so that an allow of a trusted file does not undo what these tighten.
    { name: "project", rules: untrusted, tightenOnly: true },
    // The person's own words, though they stand above the project's.
    { name: "project", rules: environment },
    {
      name: "flags",
      rules: [
        ...(flags.allow ?? []).map((rule) => parseRuleFlag(rule, "allow")),
        ...(flags.deny ?? []).map((rule) => parseRuleFlag(rule, "deny")),
      ],
    },
  ]
}

/** Flags that change what may be done. */
export interface RuleFlags {
  allow?: string[]
  deny?: string[]
}
