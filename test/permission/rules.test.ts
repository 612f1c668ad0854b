import { describe, expect, test } from "vitest"
import {
  evaluate,
  expandHome,
  PermissionConfig,
  parseRuleFlag,
  rulesFromObject,
} from "../../src/permission/rules.ts"
import { UsageError } from "../../src/util/errors.ts"

const rules = rulesFromObject({
  "*": "ask",
  read: { "*": "allow", "*.env": "ask" },
  bash: { "*": "ask", "git status*": "allow", "rm *": "deny" },
  "mcp_*": "deny",
})

describe("rules", () => {
  test.each([
    ["read", "a.ts", "allow"],
    ["read", "prod.env", "ask"],
    ["bash", "git status -s", "allow"],
    ["bash", "rm", "deny"],
    ["bash", "git push", "ask"],
    ["mcp_x", "anything", "deny"],
    ["other", "anything", "ask"],
  ])("%s %s: %s", (permission, pattern, action) => {
    expect(evaluate(permission, pattern, rules)?.action).toBe(action)
  })

  test("lets the last matching rule decide, even if it is more general", () => {
    const reordered = rulesFromObject({ bash: { "rm *": "deny", "*": "allow" } })
    expect(evaluate("bash", "rm x", reordered)).toMatchObject({ pattern: "*", action: "allow" })
  })

  test("returns no rule if none matches", () => {
    expect(evaluate("edit", "a", rulesFromObject({ bash: "allow" }))).toBeUndefined()
  })

  test("keeps the order and the source of rules", () => {
    expect(rulesFromObject({ edit: "deny", bash: { b: "ask", a: "allow" } }, { file: "f", line: 3 })).toEqual(
      [
        { permission: "edit", pattern: "*", action: "deny", source: { file: "f", line: 3 } },
        { permission: "bash", pattern: "b", action: "ask", source: { file: "f", line: 3 } },
        { permission: "bash", pattern: "a", action: "allow", source: { file: "f", line: 3 } },
      ],
    )
    expect(rulesFromObject("deny")).toEqual([{ permission: "*", pattern: "*", action: "deny" }])
  })

  test("treats the name of a tool and its permission as the same", () => {
    expect(evaluate("edit", "a", rulesFromObject({ write: "deny" }))?.action).toBe("deny")
    expect(evaluate("apply_patch", "a", rulesFromObject({ edit: "deny" }))?.action).toBe("deny")
    expect(evaluate("todo", "a", rulesFromObject({ todowrite: "deny" }))?.action).toBe("deny")
  })

  test("accepts names of the object prototype", () => {
    for (const name of ["__proto__", "constructor", "toString"]) {
      expect(evaluate(name, name, rulesFromObject({ bash: "allow" }))).toBeUndefined()
      expect(evaluate(name, "x", rulesFromObject({ "*": "ask", [name]: "deny" }))?.action).toBe("deny")
    }
  })

  test("accepts valid config values only", () => {
    expect(PermissionConfig.safeParse("allow").success).toBe(true)
    expect(PermissionConfig.safeParse({ bash: { "*": "ask" }, edit: "deny" }).success).toBe(true)
    expect(PermissionConfig.safeParse({ bash: "allowed" }).success).toBe(false)
    expect(PermissionConfig.safeParse({ bash: { a: { b: "allow" } } }).success).toBe(false)
  })

  test.each([
    ["bash:git *", { permission: "bash", pattern: "git *" }],
    ["edit", { permission: "edit", pattern: "*" }],
    ["webfetch:https://example.com/*", { permission: "webfetch", pattern: "https://example.com/*" }],
  ])("parses the flag %j", (text, rule) => {
    expect(parseRuleFlag(text, "allow")).toMatchObject({
      ...rule,
      action: "allow",
      source: { file: "--allow" },
    })
  })

  test.each(["", ":x", "bash:"])("rejects the flag %j", (text) => {
    expect(() => parseRuleFlag(text, "deny")).toThrow(UsageError)
  })

  test.each([
    ["~", "/h"],
    ["~/.ssh/**", "/h/.ssh/**"],
    ["$HOME/x", "/h/x"],
    ["~root/x", "~root/x"],
    ["a/~/b", "a/~/b"],
    ["$HOMER/x", "$HOMER/x"],
  ])("expands %s to %s", (pattern, expected) => {
    expect(expandHome(pattern, "/h")).toBe(expected)
  })
})
