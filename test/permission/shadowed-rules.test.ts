import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { judge, type Layer } from "../../src/permission/policy.ts"
import { type PermissionConfig, rulesFromObject } from "../../src/permission/rules.ts"
import { shadowedRules } from "../../src/permission/shadowed-rules.ts"
import type { Action, Rule } from "../../src/schema/permission.ts"
import { runs } from "../runs.ts"
import { policyOf } from "./support.ts"

const layer = (name: Layer["name"], config: PermissionConfig, more: Partial<Layer> = {}): Layer => ({
  name,
  rules: rulesFromObject(config, { file: name }),
  ...more,
})

/** Formats results as `rule < by`, each as `permission pattern` with its layer, unless that is the user's. */
function shadows(...layers: Layer[]): string[] {
  const name = ({ permission, pattern, source }: Rule) =>
    `${permission} ${pattern}${source?.file === "user" ? "" : ` of ${source?.file}`}`
  return shadowedRules(layers).map(({ rule, by }) => `${name(rule)} < ${name(by)}`)
}

describe("within a file", () => {
  test.each<[PermissionConfig, string[]]>([
    [{ bash: { "rm *": "deny", "*": "allow" } }, ["bash rm * < bash *"]],
    [{ bash: { "git push *": "deny", "git *": "allow" } }, ["bash git push * < bash git *"]],
    [{ bash: "deny", "*": "allow" }, ["bash * < * *"]],
    [{ bash: { "git *": "ask", "*": "deny" } }, ["bash git * < bash *"]],
    [{ write: "deny", edit: "allow" }, ["write * < edit *"]],
    [{ bash: { "*": "allow", "rm *": "deny" } }, []],
    [{ bash: { "git *": "allow", "npm *": "deny" } }, []],
    // The narrower allow can name an option that the wider one does not allow.
    [{ bash: { "find * -exec *": "allow", "find *": "allow" } }, []],
    // A rule must name a protected file.
    [{ read: { "*.env": "deny", "*": "allow" } }, []],
    [{ edit: { ".git/hooks/*": "deny", "*": "allow" } }, []],
    [{ edit: { ".git/hooks/*": "deny", ".git/*": "allow" } }, ["edit .git/hooks/* < edit .git/*"]],
  ])("%j: %j", (config, expected) => {
    expect(shadows(layer("user", config))).toEqual(expected)
  })
})

describe("across layers", () => {
  const userDeny = layer("user", { bash: { "rm *": "deny" } })
  const userAsk = layer("user", { bash: { "rm *": "ask" } })
  const allow = layer("project", { bash: { "rm *": "allow" } })

  test("lets a later layer overrule an ask, but not a deny of the user", () => {
    expect(shadows(userAsk, allow)).toEqual(["bash rm * < bash rm * of project"])
    expect(shadows(userDeny, allow)).toEqual(["bash rm * of project < bash rm *"])
  })

  test("does not let a final deny shadow rules inside its exception", () => {
    const excepted = layer("user", { bash: { "rm *": "deny", "rm x *": "ask" } })
    expect(shadows(excepted, layer("project", { bash: { "rm x *": "allow" } }))).toEqual([
      "bash rm x * < bash rm x * of project",
    ])
    expect(shadows(excepted, layer("project", { bash: { "rm y *": "allow" } }))).toEqual([
      "bash rm y * of project < bash rm *",
    ])
  })

  test("lets an untrusted project shadow only rules that it makes stricter", () => {
    const project = (action: Action) => layer("project", { bash: { "rm *": action } }, { tightenOnly: true })
    expect(shadows(userAsk, project("allow"))).toEqual([])
    expect(shadows(userAsk, project("deny"))).toEqual(["bash rm * < bash rm * of project"])
  })

  test("ignores defaults and grants", () => {
    expect(shadows(layer("defaults", { read: "allow" }), layer("user", { "*": "ask" }))).toEqual([])
    expect(shadows(userAsk, layer("grants", { bash: "allow" }))).toEqual([])
  })
})

test("lists only rules that never decide", () => {
  const action = fc.constantFrom<Action>("allow", "ask", "deny")
  const pattern = fc.constantFrom("*", "a", "a *", "a b *", "b", "?", "*b")
  const rule = fc.record({ permission: fc.constantFrom("*", "my_tool", "other"), pattern, action })
  const layers = fc.tuple(
    ...(["user", "project", "agent", "flags"] as const).map((name) =>
      fc.record({
        name: fc.constant(name),
        rules: fc.array(rule, { maxLength: 4 }),
        tightenOnly: name === "project" ? fc.boolean() : fc.constant(false),
      }),
    ),
  )
  fc.assert(
    fc.property(layers, (given) => {
      const dead = new Set(shadowedRules(given).map((entry) => entry.rule))
      for (const permission of ["my_tool", "other"]) {
        for (const text of ["a", "a b", "a b c", "b", "c", "cb"]) {
          const decisive = judge(policyOf({}, { layers: given }), permission, [text]).rule
          expect(decisive && dead.has(decisive)).not.toBe(true)
        }
      }
    }),
    { numRuns: runs(5_000) },
  )
})
