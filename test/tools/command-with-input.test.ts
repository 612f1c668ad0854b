import { execFileSync } from "node:child_process"
import fc from "fast-check"
import { expect, test } from "vitest"
import { commandWithInput } from "../../src/tools/bash/job.ts"
import { allow, verdictOf } from "../permission/support.ts"

const verdict = (command: string, text: string, rules = {}) =>
  verdictOf(rules, "bash", commandWithInput(command, text))

test.each([
  ["cat", "rm -rf x", "allow"],
  ["wc -l", "$(touch x)", "allow"],
  ["bash", "ls", "ask"],
  ["cat | sh", "ls", "ask"],
  ["python3 -i", "print(1)", "ask"],
  ["xargs rm", "a b", "ask"],
])("%s reading %j: %s", async (command, text, action) => {
  expect((await verdict(command, text)).action).toBe(action)
})

test("a rule for a program covers its input, except for shells and interpreters", async () => {
  expect((await verdict("./setup -i", "yes", allow("./setup *"))).action).toBe("allow")
  expect((await verdict("python3 -i", "print(1)", allow("python3 *"))).action).toBe("ask")
  expect((await verdict("bash", "rm -rf x", allow("bash", "bash *"))).action).toBe("ask")
})

test("the combined text runs the command with any text as its input", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[ -~\n]{0,60}$/), fc.boolean(), (words, marked) => {
      const text = `${marked ? "END_OF_INPUT\n" : ""}${words}\n`
      expect(execFileSync("/bin/bash", ["-c", commandWithInput("cat", text)]).toString()).toBe(text)
    }),
    { numRuns: 40 },
  )
})
