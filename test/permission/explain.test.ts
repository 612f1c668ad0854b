import { describe, expect, test } from "vitest"
import type { Policy } from "../../src/permission/policy.ts"
import type { PermissionAsk } from "../../src/permission/request.ts"
import { rulesFromObject } from "../../src/permission/rules.ts"
import type { Rule } from "../../src/schema/permission.ts"
import { harness, policyOf, scopeOf } from "./support.ts"

function explain(policy: Policy, request: PermissionAsk) {
  return harness().permission.explain(request, scopeOf(policy))
}

/** Creates rules with line numbers, as a loader does. */
function written(...rules: [permission: string, pattern: string, action: Rule["action"]][]): Policy {
  const policy = policyOf({})
  const user = rules.map(
    ([permission, pattern, action], index): Rule => ({
      permission,
      pattern,
      action,
      source: { file: "/w/tackle.json", line: index + 2 },
    }),
  )
  return { layers: [...policy.layers, { name: "user", rules: user }] }
}

describe("explain", () => {
  test("gives every command its verdict and its rule with file and line", async () => {
    const policy = written(["bash", "*", "ask"], ["bash", "git *", "allow"], ["bash", "rm *", "deny"])
    const explanation = await explain(policy, { permission: "bash", patterns: ["git status && r\\m x"] })
    expect(explanation.verdict).toBe("deny")
    expect(explanation.rule).toEqual(explanation.commands[1]?.rule)
    expect(explanation.commands).toEqual([
      {
        argv: ["git", "status"],
        pattern: "git status",
        verdict: "allow",
        rule: { permission: "bash", pattern: "git *", action: "allow", source: "/w/tackle.json", line: 3 },
      },
      {
        argv: ["rm", "x"],
        pattern: "rm x",
        verdict: "deny",
        rule: { permission: "bash", pattern: "rm *", action: "deny", source: "/w/tackle.json", line: 4 },
      },
    ])
  })

  test("lists each overruled rule once", async () => {
    const policy = written(["bash", "*", "ask"], ["bash", "npm *", "allow"])
    const { shadowed } = await explain(policy, { permission: "bash", patterns: ["npm test; npm run x"] })
    expect(shadowed).toEqual([
      { permission: "*", pattern: "*", action: "ask", source: "defaults" },
      { permission: "bash", pattern: "*", action: "ask", source: "/w/tackle.json", line: 2 },
    ])
  })

  test("lists an ignored allow as overruled, with the reason", async () => {
    const policy = written(["bash", "sort *", "allow"])
    const { verdict, commands, shadowed } = await explain(policy, {
      permission: "bash",
      patterns: ["sort -o a b"],
    })
    expect(verdict).toBe("ask")
    expect(commands[0]?.reason).toContain("can run a program or write a file")
    expect(shadowed.map(({ pattern }) => pattern)).toContain("sort *")
  })

  test("lists opened files and outside directories as separate checks", async () => {
    const { verdict, checks } = await explain(written(["bash", "*", "allow"]), {
      permission: "bash",
      patterns: ["make > /h/out"],
    })
    expect(verdict).toBe("ask")
    expect(checks).toMatchObject([
      { permission: "bash", pattern: "make", verdict: "allow" },
      { permission: "edit", pattern: "/h/out", verdict: "ask", resolved: "/h/out" },
      { permission: "external_directory", pattern: "/h/*", verdict: "ask" },
    ])
  })

  test("gives the session as the reason for a read only if no rule decides", async () => {
    const reason = async (policy: Policy, pattern: string) => {
      const scope = scopeOf(policy, "/w", ["/session"])
      const request = { permission: "read", patterns: [pattern] }
      return (await harness().permission.explain(request, scope)).checks[0]?.reason
    }
    expect(await reason(written(["read", "*", "ask"]), "/session/a")).toBe("the file belongs to the session")
    expect(await reason(written(["read", "*", "deny"]), "/session/a")).toBeUndefined()
  })

  test("shows a rule as written, with `~`", async () => {
    const policy = written(["read", "~/.ssh/**", "deny"])
    const { rule } = await explain(policy, { permission: "read", patterns: ["/h/.ssh/id"] })
    expect(rule).toMatchObject({ pattern: "~/.ssh/**", line: 2 })
  })

  test("has an entry without arguments for each pattern of other permissions", async () => {
    const policy = written(["edit", "src/*", "allow"])
    const { commands } = await explain(policy, { permission: "edit", patterns: ["src/a", "b"] })
    expect(commands).toMatchObject([
      { argv: [], pattern: "src/a", verdict: "allow", rule: { line: 2 } },
      { argv: [], pattern: "b", verdict: "ask", rule: { source: "defaults" } },
    ])
  })

  test("names defaults, proofs, flags, grants and ceilings as sources", async () => {
    const source = async (policy: Policy, pattern: string) =>
      (await explain(policy, { permission: "bash", patterns: [pattern] })).rule?.source
    const layer = (name: "flags" | "grants", file: string) =>
      policyOf({}, { layers: [{ name, rules: rulesFromObject({ bash: "allow" }, { file }) }] })
    expect(await source(policyOf({}), "make")).toBe("defaults")
    expect(await source(policyOf({}), "ls")).toBe("defaults: proved read-only")
    expect(await source(layer("flags", "--allow"), "make")).toBe("--allow")
    expect(await source(layer("grants", "grant gra_1"), "make")).toBe("grant gra_1")
    const ceiling = rulesFromObject({ bash: "deny" })
    expect(await source(policyOf({}, { ceiling }), "make")).toBe("ceiling")
  })
})
