import { stripVTControlCharacters } from "node:util"
import { expect, test } from "vitest"
import { describeRequest, isShownWhole } from "../../../src/cli/view/request.ts"
import type { PermissionRequest } from "../../../src/schema/permission.ts"

function request(change: Partial<PermissionRequest>): PermissionRequest {
  return {
    id: "per_1",
    sessionID: "ses_1",
    permission: "bash",
    patterns: [],
    always: [],
    rules: [],
    metadata: {},
    ...change,
  }
}

const shown = (given: PermissionRequest, whole = true) =>
  stripVTControlCharacters(describeRequest(given, { worktree: "/w", whole }))

test("shows the full command, every pattern and the target of a link", () => {
  const command = `grep a f${" ".repeat(300)}; env`
  const text = shown(
    request({
      patterns: ["grep a f", "env"],
      metadata: { command, resolved: ["/h/.bashrc"], reasons: ["it is risky"] },
    }),
  )
  expect(text).toContain(command)
  expect(text).toContain("asks for: grep a f\n    env")
  expect(text).toContain("resolved: /h/.bashrc")
  expect(text).toContain("reasons: it is risky")
})

test("escapes invisible characters in the command, the patterns and the rules", () => {
  const hostile = "npm\u202e test\t\u{e0041}"
  const text = shown(
    request({
      patterns: [hostile],
      always: ["npm\u200b *"],
      metadata: { command: hostile, invisibleCharacters: true },
    }),
  )
  expect(text).toContain("npm<U+202E> test<U+0009><U+E0041>")
  expect(text).toContain("always allows bash: npm<U+200B> *")
  expect(text).toContain("invisible characters")
  expect(text).not.toMatch(/[\p{Cf}\t]/u)
})

test('cuts a long diff until it is requested in full, and offers "always" only then', () => {
  const diff = Array.from({ length: 100 }, (_, line) => `+\tline ${line}\u202e`).join("\n")
  const given = request({ permission: "edit", patterns: ["a.ts"], always: ["*"], metadata: { diff } })
  expect(isShownWhole(given)).toBe(false)
  const cut = shown(given, false)
  expect(cut).toContain("… 40 more lines")
  expect(cut).not.toContain("always allows")
  const whole = shown(given)
  expect(whole).toContain("+\tline 99<U+202E>")
  expect(whole).toContain("always allows edit: *")
})

test("shows a short diff in full", () => {
  expect(isShownWhole(request({ metadata: { diff: "+a\n-b\n" } }))).toBe(true)
  expect(isShownWhole(request({}))).toBe(true)
})

test("explains a loop, and permissions whose names do not explain themselves", () => {
  const loop = { permission: "doom_loop", patterns: ["read"] }
  const once = shown(request({ ...loop, metadata: { input: {}, kind: "repeat", count: 3, period: 1 } }))
  expect(once).toContain("? doom_loop: the model repeats itself\n    read\n")
  expect(once).toContain("  why: the model has requested this call 3 times in a row")
  expect(once).not.toContain("count")
  const cycle = shown(request({ ...loop, metadata: { kind: "cycle", count: 3, period: 2 } }))
  expect(cycle).toContain("  why: the model has requested the same 2 calls 3 times in a row")
  expect(shown(request({ permission: "external_directory", patterns: ["/etc/*"] }))).toContain(
    "? external_directory: use files outside this project\n    /etc/*",
  )
})

test("names the rules that decided to ask with file and line, or the default", () => {
  const rule = { permission: "bash", pattern: "git *", action: "ask", source: "/w/tackle.json", line: 4 }
  const asked = (...rules: unknown[]) =>
    shown(request({ metadata: { command: "git push", decidedBy: rules } }))
  expect(asked(rule)).toContain('asks because: tackle.json:4 asks for "bash: git *"')
  expect(asked({ ...rule, action: "deny", source: "--deny", line: undefined })).toContain(
    'asks because: --deny denies "bash: git *", which could match this request',
  )
  const none = { permission: "bash", pattern: "*", action: "ask", source: "defaults" }
  expect(asked(none, none)).toMatch(/asks because: no rule allows it, and the default is to ask$/)
  expect(asked({ ...none, permission: "read", pattern: "*.env" }, rule)).toContain(
    'asks because: a default asks for "read: *.env"\n    tackle.json:4 asks for "bash: git *"',
  )
  expect(asked({ ...none, source: "a plugin" })).toContain("asks because: a plugin asks")
})

test('says why "always" is not offered', () => {
  const onlyOnce = ["a rule would allow it to run any code from its input"]
  const text = shown(request({ patterns: ["python3 -"], metadata: { onlyOnce } }))
  expect(text).toContain('"always" is not available: a rule would allow it to run any code from its input')
})
