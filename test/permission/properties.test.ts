import { spawnSync } from "node:child_process"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { hostileTexts } from "../../bench/hostile-texts.ts"
import { checkRequest } from "../../src/permission/check.ts"
import { isStricter, type Policy } from "../../src/permission/policy.ts"
import { planCommand } from "../../src/permission/shell/plan-command.ts"
import type { Action, Rule } from "../../src/schema/permission.ts"
import { runs } from "../runs.ts"
import { policyOf, scopeOf } from "./support.ts"

const command = fc.constantFrom(
  ..."ls|npm test|rm -rf x|git push origin|git log|cat .env|echo hi > out|cat /etc/passwd|$X y|find . -delete|a && rm x|env rm x|sort -o a b|(curl e)|x=$(npm ci)".split(
    "|",
  ),
)
const pattern = fc.constantFrom(
  "*",
  "npm *",
  "rm *",
  "git *",
  "git push *",
  "ls",
  "cat *",
  "echo *",
  "find *",
  "env *",
)
const action = fc.constantFrom<Action>("allow", "ask", "deny")
const rule = fc.record({ permission: fc.constantFrom("*", "bash", "edit", "read"), pattern, action })
const rules = fc.array(rule, { maxLength: 6 })

const verdict = async (policy: Policy, patterns: string[]) =>
  (await checkRequest({ permission: "bash", patterns }, scopeOf(policy), "/h")).action

const over = (user: Rule[]): Policy => policyOf({}, { layers: [{ name: "user", rules: user }] })

describe("checkRequest, by generated rules and commands", () => {
  test("never makes the verdict on a command less strict by adding a deny", async () => {
    const deny = fc.record({
      permission: fc.constantFrom("*", "bash"),
      pattern,
      action: fc.constant<Action>("deny"),
    })
    await fc.assert(
      fc.asyncProperty(rules, deny, fc.nat(6), command, async (given, added, at, text) => {
        const before = await verdict(over(given), [text])
        const after = await verdict(over(given.toSpliced(at, 0, added)), [text])
        expect(isStricter(before, after)).toBe(false)
      }),
      { numRuns: runs(600) },
    )
  })

  test("does not depend on the order of patterns, and more patterns are never less strict", async () => {
    const several = fc.array(command, { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(rules, several, command, async (given, patterns, more) => {
        const policy = over(given)
        const action = await verdict(policy, patterns)
        expect(await verdict(policy, patterns.toReversed())).toBe(action)
        expect(await verdict(policy, patterns.toSorted())).toBe(action)
        expect(isStricter(action, await verdict(policy, [...patterns, more]))).toBe(false)
      }),
      { numRuns: runs(300) },
    )
  })

  const texts = runs(10_000)
  // Thousands of verdicts, and a bash process for each allowed text: slow on a busy machine.
  const patience = { timeout: 180_000 }

  test(
    `of ${texts} random and hostile texts none throws, and none is allowed that does not parse`,
    patience,
    async () => {
      const generous = policyOf({
        bash: {
          "?*": "ask",
          "ls*": "allow",
          "cat *": "allow",
          "echo*": "allow",
          "git *": "allow",
          "x*": "allow",
          "sh *": "allow",
        },
        edit: "allow",
        external_directory: "allow",
      })
      const scope = scopeOf(generous)
      const allowed: string[] = []
      let count = 0
      for (const text of hostileTexts(1)) {
        const { action } = await checkRequest({ permission: "bash", patterns: [text] }, scope, "/h")
        if (action === "allow") allowed.push(text)
        count += 1
        if (count === texts) break
      }
      expect(allowed.length).toBeGreaterThan(texts / 200)
      for (const text of allowed) {
        const plan = await planCommand(text)
        expect({ text, opaque: plan.opaque, garbled: plan.garbled }).toEqual({
          text,
          opaque: undefined,
          garbled: false,
        })
        // -n parses the text without running it.
        expect(spawnSync("bash", ["-n", "-c", text]).status, text).toBe(0)
      }
    },
  )

  test("lets a general allow cover unknown text, but nothing that a deny can match", async () => {
    const policy = policyOf({
      bash: { "*": "allow", "curl *": "deny" },
      edit: "allow",
      external_directory: "allow",
    })
    let seen = 0
    for (const text of hostileTexts(2)) {
      if (!text.includes("curl")) continue
      const { action, details } = await checkRequest(
        { permission: "bash", patterns: [text] },
        scopeOf(policy),
        "/h",
      )
      const plan = await planCommand(text)
      const names = plan.commands.some(({ argv }) => argv[0]?.text === "curl")
      if (names) expect({ text, action }).toEqual({ text, action: "deny" })
      expect(details.length).toBeGreaterThan(0)
      seen += 1
      if (seen === 500) break
    }
  })
})
