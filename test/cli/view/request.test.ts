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
    metadata: {},
    ...change,
  }
}

const shown = (given: PermissionRequest, whole = true) =>
  stripVTControlCharacters(describeRequest(given, { worktree: "/w", whole }))

test("the command is shown whole, with its tail, every pattern and where a link leads", () => {
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

test("what cannot be seen is written out, in the command, the patterns and the rules", () => {
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

test("a long diff is cut until all of it is wanted, and offers nothing to remember before that", () => {
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

test("a short diff is whole", () => {
  expect(isShownWhole(request({ metadata: { diff: "+a\n-b\n" } }))).toBe(true)
  expect(isShownWhole(request({}))).toBe(true)
})
