import { afterEach, beforeEach, expect, test } from "vitest"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

const user = "home/.config/tackle/tackle.json"

/** Returns a file with one rule for `git *`, and its examples on a separate line. */
function gitRule(examples: unknown, more = ""): string {
  return `{ "permission": { "bash": {
    "git *": { "action": "allow",
      "examples": ${JSON.stringify(examples)} }${more}
  } } }`
}

test("applies a rule whose examples hold like any other", async () => {
  const file = place.write(user, gitRule({ allow: ["git commit -m x"], ask: ["git -c x=y status", "make"] }))
  const { permission } = await place.load()
  expect(permission.user).toEqual([
    { permission: "bash", pattern: "git *", action: "allow", source: { file, line: 2 } },
  ])
})

test("rejects a failing example with its location and the rule that decided", async () => {
  const file = place.write(user, gitRule({ ask: ["make", "git push"] }))
  const message = await place.failure()
  expect(message).toContain(`${file}:3:`)
  expect(message).toContain("permission.bash.git *.examples.ask[1]: this pattern is allowed")
  expect(message).toContain(`because of the rule "bash: git *" (${file}:2)`)
  expect(message).not.toContain("git push")
})

test("checks examples against the other rules of the same file only", async () => {
  place.write(user, gitRule({ deny: ["git push"], allow: ["git fetch"] }, ', "git push *": "deny"'))
  place.write("project/tackle.json", { permission: { bash: { "git fetch *": "deny" } } })
  expect((await place.load()).permission.project).toHaveLength(1)
})

test("checks an agent's examples against its own rules and bounds", async () => {
  const rule = { "src/*": { action: "allow", examples: { allow: ["src/a.ts"], deny: ["lib/a.ts"] } } }
  place.write(user, { agent: { plan: { permission: { edit: rule } } } })
  expect((await place.load()).agentPermission.plan).toHaveLength(1)
  place.write("project/tackle.json", { agent: { plan: { permission: { edit: rule } } } })
  // A project's rules do not lift bounds.
  expect(await place.failure()).toContain(
    "agent.plan.permission.edit.src/*.examples.allow[0]: this pattern is denied",
  )
  place.write("project/tackle.json", {})
  place.write(user, { agent: { build: { permission: { edit: rule } } } })
  expect(await place.failure()).toContain(
    "agent.build.permission.edit.src/*.examples.deny[0]: this pattern needs permission",
  )
})

test("accepts the same shape in TOML", async () => {
  place.write(
    "home/.config/tackle/config.toml",
    '[permission.bash."git *"]\naction = "allow"\nexamples = { ask = ["git push"] }\n',
  )
  expect(await place.failure()).toContain("examples.ask[0]: this pattern is allowed")
})

test.each([
  [{ allow: "git status" }, "expected a list of strings"],
  [{ allow: [1] }, "expected a list of strings"],
  [{ maybe: ["x"] }, 'expected "allow", "ask" or "deny" as the key'],
  [["x"], 'expected an object that maps "allow", "ask" or "deny" to lists'],
])("rejects examples of the form %j", async (examples, text) => {
  place.write(user, gitRule(examples))
  expect(await place.failure()).toContain(text)
})

test("requires an action in a pattern's object, and rejects other keys", async () => {
  place.write(
    user,
    '{ "permission": { "bash": { "x": { "examples": {} }, "y": { "action": "deny", "a": 1 } } } }',
  )
  const message = await place.failure()
  expect(message).toContain('permission.bash.x.action is missing: expected "allow", "ask" or "deny".')
  expect(message).toContain('unknown key "permission.bash.y.a"')
})

test("starts despite a failing example of an untrusted project", async () => {
  place.write("project/tackle.json", gitRule({ deny: ["git push"] }))
  expect((await place.load({ trusted: false })).permission.untrusted).toHaveLength(1)
  expect(await place.failure()).toContain("examples.deny[0]")
})

test("warns of a failing example in another program's file", async () => {
  place.write("home/.config/opencode/opencode.json", gitRule({ deny: ["git push"] }))
  expect((await place.load()).warnings).toEqual([expect.stringContaining("examples.deny[0]")])
})
