import fc from "fast-check"
import { describe, expect, test } from "vitest"
import {
  expandPolicy,
  isOffered,
  isStricter,
  judge,
  type Layer,
  type Policy,
  withDefault,
  withFixedCeiling,
} from "../../src/permission/policy.ts"
import { type PermissionConfig, rulesFromObject } from "../../src/permission/rules.ts"
import type { Action, Rule } from "../../src/schema/permission.ts"
import { runs } from "../runs.ts"
import { policyOf } from "./support.ts"

function layered(...layers: Layer[]): Policy {
  return { layers }
}

describe("judge", () => {
  test("asks if no rule matches", () => {
    expect(judge(layered(), "bash", ["x"])).toEqual({ action: "ask" })
  })

  test("lets a later layer win and names it", () => {
    const policy = policyOf(
      { edit: "allow" },
      { layers: [{ name: "project", rules: rulesFromObject({ edit: "ask" }) }] },
    )
    expect(judge(policy, "edit", ["a"])).toMatchObject({
      action: "ask",
      layer: "project",
      rule: { pattern: "*" },
    })
  })

  test("matches any of the spellings", () => {
    const policy = policyOf({ edit: { "/w/src/*": "allow" } })
    expect(judge(policy, "edit", ["src/a", "/w/src/a"]).action).toBe("allow")
    expect(judge(policy, "edit", ["src/a"]).action).toBe("ask")
  })

  test.each(["project", "agent", "flags", "grants"] as const)(
    "a deny of the user is not loosened by the layer %s",
    (name) => {
      const policy = policyOf(
        { bash: { "rm *": "deny" } },
        { layers: [{ name, rules: rulesFromObject({ bash: "allow" }) }] },
      )
      expect(judge(policy, "bash", ["rm x"])).toMatchObject({ action: "deny", layer: "user" })
      expect(judge(policy, "bash", ["ls"]).action).toBe("allow")
    },
  )

  test.each<[Action, Action, Action]>([
    ["allow", "deny", "deny"],
    ["allow", "ask", "ask"],
    ["deny", "allow", "deny"],
    ["ask", "allow", "ask"],
    ["allow", "allow", "allow"],
  ])("combines %s with %s of the parent session to %s", (own, parent, verdict) => {
    const policy = { ...policyOf({ bash: own }), bound: policyOf({ bash: parent }) }
    expect(judge(policy, "bash", ["npm test"]).action).toBe(verdict)
    expect(isOffered(policy, "bash")).toBe(verdict !== "deny")
  })

  test("applies the policies of all parent sessions, with home and read-only proofs", () => {
    const rule: Rule = { permission: "bash", pattern: "ls", action: "allow" }
    const root = policyOf({ edit: { "~/keep/*": "deny" } })
    const policy = { ...policyOf({ "*": "allow" }), bound: { ...policyOf({ edit: "allow" }), bound: root } }
    expect(judge(expandPolicy(policy, "/h"), "edit", ["/h/keep/a"]).action).toBe("deny")
    const child = { ...policyOf({}), bound: policyOf({}) }
    expect(judge(child, "bash", ["ls"]).action).toBe("ask")
    expect(judge(withDefault(child, rule), "bash", ["ls"]).action).toBe("allow")
  })

  test("lets a grant lift an ask but not a deny", () => {
    const grants: Layer = { name: "grants", rules: rulesFromObject({ "*": "allow" }) }
    const project: Layer = { name: "project", rules: rulesFromObject({ edit: "deny", bash: "ask" }) }
    const policy = layered(project, grants)
    expect(judge(policy, "edit", ["a"])).toMatchObject({ action: "deny", layer: "project" })
    expect(judge(policy, "bash", ["a"])).toMatchObject({ action: "allow", layer: "grants" })
  })

  test("lets an untrusted project only make verdicts stricter", () => {
    const project = (action: Action): Layer => ({
      name: "project",
      tightenOnly: true,
      rules: rulesFromObject({ read: action, edit: action }),
    })
    expect(judge(policyOf({}, { layers: [project("allow")] }), "edit", ["a"]).action).toBe("ask")
    expect(judge(policyOf({}, { layers: [project("ask")] }), "read", ["a"]).action).toBe("ask")
    expect(judge(policyOf({ edit: "deny" }, { layers: [project("ask")] }), "edit", ["a"]).action).toBe("deny")
    expect(judge(policyOf({}, { layers: [project("deny")] }), "read", ["a"]).action).toBe("deny")
  })

  test("applies the ceiling unless the agent's own rules lift it", () => {
    const ceiling = rulesFromObject({ "*": "deny", read: "allow", bash: "allow" })
    const policy = policyOf({ edit: "allow" }, { ceiling })
    expect(judge(policy, "edit", ["a"])).toMatchObject({ action: "deny", layer: "ceiling" })
    expect(judge(policy, "read", ["a"]).action).toBe("allow")
    expect(judge(policy, "bash", ["npm test"]).action).toBe("ask")
    const flags: Layer = { name: "flags", rules: rulesFromObject({ edit: "allow" }) }
    expect(judge(policyOf({}, { ceiling, layers: [flags] }), "edit", ["a"]).action).toBe("deny")
    const agent: Layer = { name: "agent", rules: rulesFromObject({ edit: "allow" }) }
    expect(judge(policyOf({}, { ceiling, layers: [agent] }), "edit", ["a"]).action).toBe("allow")
  })

  test("lets rules that keep denies lift an ask but not a deny of a lower layer or ceiling", () => {
    const ceiling = rulesFromObject({ "*": "allow", edit: "deny" })
    const kept = (rules: PermissionConfig): Layer => ({
      name: "agent",
      rules: rulesFromObject(rules),
      keepsDenies: true,
    })
    const project: Layer = { name: "project", rules: rulesFromObject({ bash: { "git push *": "deny" } }) }
    const policy = policyOf({}, { layers: [project, kept("allow")], ceiling })
    expect(judge(policy, "bash", ["make"]).action).toBe("allow")
    expect(judge(policy, "bash", ["git push origin"])).toMatchObject({ action: "deny", layer: "project" })
    expect(judge(policy, "edit", ["a"])).toMatchObject({ action: "deny", layer: "ceiling" })
    // The text could be the denied push, whatever the later rule covers.
    expect(judge(policy, "bash", ["git $x"], { span: "git *" }).action).toBe("ask")
    expect(judge(policyOf({}, { layers: [kept({ read: "deny" })] }), "read", ["a"]).action).toBe("deny")
  })

  test("applies a fixed ceiling whatever the agent's own rules say", () => {
    const agent: Layer = { name: "agent", rules: rulesFromObject({ "*": "allow" }) }
    const own = policyOf({ webfetch: "deny" }, { layers: [agent] })
    const policy = withFixedCeiling(own, rulesFromObject({ "*": "allow", bash: "deny" }))
    expect(judge(policy, "bash", ["make"])).toMatchObject({ action: "deny", layer: "ceiling" })
    expect(judge(policy, "edit", ["a"]).action).toBe("allow")
    expect(judge(policy, "webfetch", ["a"]).action).toBe("deny")
    expect(isOffered(policy, "bash")).toBe(false)
    const twice = withFixedCeiling(policy, rulesFromObject({ "*": "allow", edit: "deny" }))
    expect([judge(twice, "bash", ["x"]).action, judge(twice, "edit", ["x"]).action]).toEqual(["deny", "deny"])
  })

  test("ignores an allow that does not count", () => {
    const counts = (rule: Rule) => rule.pattern.includes(".git")
    const policy = policyOf({ edit: { "*": "deny", ".git/*": "allow", "**": "allow" } })
    expect(judge(policy, "edit", [".git/x"], { counts })).toMatchObject({
      action: "allow",
      rule: { pattern: ".git/*" },
    })
    expect(judge(policy, "edit", ["a"], { counts }).action).toBe("deny")
  })

  test("does not allow by a spelling that is only for denies", () => {
    const options = { denyForms: ["rm x"] }
    expect(judge(policyOf({ bash: { "rm *": "allow" } }), "bash", ["./rm x"], options).action).toBe("ask")
    expect(
      judge(policyOf({ bash: { "*": "allow", "rm *": "deny" } }), "bash", ["./rm x"], options).action,
    ).toBe("deny")
  })

  test("asks if a rule can refuse a part of the span", () => {
    const policy = policyOf({ bash: { "git *": "allow", "git push *": "deny" } })
    expect(judge(policy, "bash", ["git $x"], { span: "git *" }).action).toBe("ask")
    expect(judge(policy, "bash", ["git log $x"], { span: "git log *" }).action).toBe("allow")
    const settled = policyOf({ bash: { "git push *": "deny", "git *": "allow" } })
    expect(judge(settled, "bash", ["git $x"], { span: "git *" }).action).toBe("allow")
    const flags: Layer = { name: "flags", rules: rulesFromObject({ bash: "allow" }) }
    expect(
      judge(policyOf({ bash: { "git push *": "deny" } }, { layers: [flags] }), "bash", ["git $x"], {
        span: "git *",
      }).action,
    ).toBe("ask")
  })
})

describe("properties", () => {
  const action = fc.constantFrom<Action>("allow", "ask", "deny")
  const pattern = fc.constantFrom("*", "a", "a *", "b", "?", "*b", "a b")
  const rule = fc.record({ permission: fc.constantFrom("*", "bash", "edit"), pattern, action })
  const layers = fc.tuple(
    ...(["defaults", "user", "project", "agent", "flags", "grants"] as const).map((name) =>
      fc.record({
        name: fc.constant(name),
        rules: fc.array(rule, { maxLength: 4 }),
        tightenOnly: fc.constant(name === "project"),
      }),
    ),
  )
  const policy = fc
    .record({ layers, ceiling: fc.option(fc.array(rule, { maxLength: 3 }), { nil: undefined }) })
    .map(({ layers: list, ceiling }): Policy => (ceiling ? { layers: list, ceiling } : { layers: list }))
  const form = fc.constantFrom("a", "a b", "b", "c")

  test("never makes a verdict less strict by adding a deny", () => {
    const added = fc.record({
      permission: fc.constantFrom("*", "bash"),
      pattern,
      action: fc.constant<Action>("deny"),
    })
    fc.assert(
      fc.property(
        policy,
        added,
        fc.nat(5),
        fc.nat(4),
        fc.array(form, { minLength: 1, maxLength: 2 }),
        (given, deny, layer, at, forms) => {
          const before = judge(given, "bash", forms).action
          const changed = given.layers.map((entry, index) =>
            index === layer
              ? { ...entry, rules: entry.rules.toSpliced(Math.min(at, entry.rules.length), 0, deny) }
              : entry,
          )
          const after = judge({ ...given, layers: changed }, "bash", forms).action
          expect(isStricter(before, after)).toBe(false)
        },
      ),
      { numRuns: runs(3_000) },
    )
  })

  test("does not depend on the order of the spellings", () => {
    fc.assert(
      fc.property(policy, fc.array(form, { minLength: 1, maxLength: 3 }), (given, forms) => {
        expect(judge(given, "bash", forms.toReversed()).action).toBe(judge(given, "bash", forms).action)
      }),
    )
  })

  test("never makes a verdict less strict by an untrusted project", () => {
    fc.assert(
      fc.property(policy, form, (given, text) => {
        const without = given.layers.filter((layer) => layer.name !== "project" && layer.name !== "grants")
        const project = given.layers.filter((layer) => layer.name === "project")
        // Placed last, so that only the project makes a difference.
        const before = judge({ layers: without }, "bash", [text]).action
        expect(isStricter(before, judge({ layers: [...without, ...project] }, "bash", [text]).action)).toBe(
          false,
        )
      }),
    )
  })
})

describe("isOffered", () => {
  test.each<[string, Parameters<typeof policyOf>[0], boolean]>([
    ["nothing said", {}, true],
    ["denied", { edit: "deny" }, false],
    ["all denied", "deny", false],
    ["denied but for something", { edit: { "*": "deny", "docs/*": "allow" } }, true],
    ["denied but for something that asks", { edit: { "*": "deny", "docs/*": "ask" } }, true],
    ["an exception that a later deny takes back", { edit: { "docs/*": "allow", "*": "deny" } }, false],
    ["another one denied", { bash: "deny" }, true],
  ])("%s: %s", (_, rules, expected) => {
    expect(isOffered(policyOf(rules), "edit")).toBe(expected)
  })

  test("considers the ceiling", () => {
    const ceiling = rulesFromObject({ "*": "deny", read: "allow" })
    expect(isOffered(policyOf("allow", { ceiling }), "edit")).toBe(false)
    expect(isOffered(policyOf("allow", { ceiling }), "read")).toBe(true)
  })
})
