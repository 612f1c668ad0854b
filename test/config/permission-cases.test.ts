import { expect, test } from "vitest"
import { ConfigError } from "../../src/config/errors.ts"
import { readPermissionCases, runPermissionCase } from "../../src/config/permission-cases.ts"

const place = { otherwise: "/w", home: "/h" }

async function outcome(line: Record<string, unknown> | string): Promise<string> {
  const [entry] = await readPermissionCases(typeof line === "string" ? line : JSON.stringify(line), "c.jsonl")
  if (!entry) throw new Error("there is no case")
  const result = await runPermissionCase(entry, place)
  return result.passed ? "passed" : result.explanation.verdict
}

const rm = { rules: { bash: { "rm *": "deny" } }, permission: "bash", pattern: "rm x" }

test.each([
  [{ ...rm, expect: "deny" }, "passed"],
  [{ ...rm, expect: "!allow" }, "passed"],
  [{ ...rm, expect: "ask" }, "deny"],
  [{ ...rm, expect: "allow" }, "deny"],
  [{ ...rm, pattern: ["ls", "rm x"], expect: "deny" }, "passed"],
  [{ ...rm, pattern: ["ls", "pwd"], expect: "allow" }, "passed"],
  [
    { rules: "allow", permission: "edit", pattern: "a", expect: "allow", case: 1, note: "further keys" },
    "passed",
  ],
  [{ rules: {}, permission: "read", pattern: "/x/a", expect: "allow", cwd: "/x" }, "passed"],
  [{ rules: {}, permission: "read", pattern: "/x/a", expect: "ask" }, "passed"],
])("%j: %s", async (line, expected) => {
  expect(await outcome(line)).toBe(expected)
})

test("keeps the written order of rules, also for keys that look like numbers", async () => {
  const line =
    '{"rules":{"my_tool":{"*":"ask","7":"allow"}},"permission":"my_tool","pattern":"7","expect":"allow"}'
  expect(await outcome(line)).toBe("passed")
  expect(await outcome(line.replace('"*":"ask","7":"allow"', '"7":"allow","*":"ask"'))).toBe("ask")
})

test("explains a failure with the line of the case", async () => {
  const [, entry] = await readPermissionCases(
    `\n${JSON.stringify({ ...rm, expect: "deny" })}\n\n${JSON.stringify({ ...rm, expect: "allow" })}\n`,
    "c.jsonl",
  )
  expect(entry?.line).toBe(4)
  expect(entry && (await runPermissionCase(entry, place))).toMatchObject({
    passed: false,
    explanation: { verdict: "deny", rule: { pattern: "rm *", source: "c.jsonl", line: 4 } },
  })
})

test("reports all invalid lines at once, by number", async () => {
  const bad = [
    "{",
    "[]",
    '{"permission":"bash","pattern":"x","expect":"ask"}',
    '{"rules":{"bash":"maybe"},"permission":"bash","pattern":"x","expect":"ask"}',
    '{"rules":{},"pattern":"x","expect":"ask"}',
    '{"rules":{},"permission":"bash","pattern":[1],"expect":"ask"}',
    '{"rules":{},"permission":"bash","pattern":[],"expect":"ask"}',
    '{"rules":{},"permission":"bash","pattern":"x","expect":"maybe"}',
    '{"rules":{},"permission":"bash","pattern":"x","expect":"ask","cwd":"w"}',
  ]
  const error = await readPermissionCases(bad.join("\n"), "c.jsonl").catch((reason: unknown) => reason)
  if (!(error instanceof ConfigError)) throw new Error("expected a ConfigError", { cause: error })
  expect(error.problems.map(({ position: { line } }) => line)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(error.problems[0]?.text).toContain("the end of the line")
})
