import { expect, test } from "vitest"
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

test("the last rule that matches decides, also when it is the more general one", () => {
  const reordered = rulesFromObject({ bash: { "rm *": "deny", "*": "allow" } })
  expect(evaluate("bash", "rm x", reordered)).toMatchObject({ pattern: "*", action: "allow" })
})

test("without a matching rule there is none", () => {
  expect(evaluate("edit", "a", rulesFromObject({ bash: "allow" }))).toBeUndefined()
})

test("rules keep the written order and the source", () => {
  expect(rulesFromObject({ edit: "deny", bash: { b: "ask", a: "allow" } }, { file: "f", line: 3 })).toEqual([
    { permission: "edit", pattern: "*", action: "deny", source: { file: "f", line: 3 } },
    { permission: "bash", pattern: "b", action: "ask", source: { file: "f", line: 3 } },
    { permission: "bash", pattern: "a", action: "allow", source: { file: "f", line: 3 } },
  ])
  expect(rulesFromObject("deny")).toEqual([{ permission: "*", pattern: "*", action: "deny" }])
})

test("a rule that names a tool holds for the permission the tool asks as, and the other way round", () => {
  expect(evaluate("edit", "a", rulesFromObject({ write: "deny" }))?.action).toBe("deny")
  expect(evaluate("apply_patch", "a", rulesFromObject({ edit: "deny" }))?.action).toBe("deny")
  expect(evaluate("todo", "a", rulesFromObject({ todowrite: "deny" }))?.action).toBe("deny")
})

test("names of an object's prototype are ordinary names", () => {
  for (const name of ["__proto__", "constructor", "toString"]) {
    expect(evaluate(name, name, rulesFromObject({ bash: "allow" }))).toBeUndefined()
    expect(evaluate(name, "x", rulesFromObject({ "*": "ask", [name]: "deny" }))?.action).toBe("deny")
  }
})

test("the schema takes what a config may hold and nothing else", () => {
  expect(PermissionConfig.safeParse("allow").success).toBe(true)
  expect(PermissionConfig.safeParse({ bash: { "*": "ask" }, edit: "deny" }).success).toBe(true)
  expect(PermissionConfig.safeParse({ bash: "allowed" }).success).toBe(false)
  expect(PermissionConfig.safeParse({ bash: { a: { b: "allow" } } }).success).toBe(false)
})

test.each([
  ["bash:git *", { permission: "bash", pattern: "git *" }],
  ["edit", { permission: "edit", pattern: "*" }],
  ["webfetch:https://example.com/*", { permission: "webfetch", pattern: "https://example.com/*" }],
])("the flag %j is a rule", (text, rule) => {
  expect(parseRuleFlag(text, "allow")).toMatchObject({
    ...rule,
    action: "allow",
    source: { file: "--allow" },
  })
})

test.each(["", ":x", "bash:"])("the flag %j is none", (text) => {
  expect(() => parseRuleFlag(text, "deny")).toThrow(UsageError)
})

test.each([
  ["~", "/h"],
  ["~/.ssh/**", "/h/.ssh/**"],
  ["$HOME/x", "/h/x"],
  ["~root/x", "~root/x"],
  ["a/~/b", "a/~/b"],
  ["$HOMER/x", "$HOMER/x"],
])("%s at home is %s", (pattern, expected) => {
  expect(expandHome(pattern, "/h")).toBe(expected)
})
