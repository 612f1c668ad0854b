import { expect, test } from "vitest"
import { type Command, fillTemplate, findCommand, listCommands } from "../../src/session/command.ts"

/** Returns the pieces as one text, with commands in angle brackets. */
const filled = (template: string, given = "") =>
  fillTemplate(template, given)
    .map((piece) => (piece.kind === "shell" ? `<${piece.command}>` : "text" in piece && piece.text))
    .join("")

test.for<[template: string, given: string, expected: string]>([
  ["Do $ARGUMENTS now", "a b", "Do a b now"],
  ["$1 then $2", "a b c d", "a then b c d"],
  ["$2 before $1", 'one "two three"', "two three before one"],
  ["$1 and $2", "a", "a and "],
  ["$1: $ARGUMENTS", "'a b' c", "a b c: 'a b' c"],
  ["Do it", "a b", "Do it\n\na b"],
  ["Do it", "", "Do it"],
  ["$ARGUMENTSX costs $100", "a", "$ARGUMENTSX costs $100\n\na"],
  ["See !`git log $1` and !`pwd`.", "-3", "See <git log -3> and <pwd>."],
  ["a!`b` ``!`c` ``", "", "a!`b` ``!`c` ``"],
])("%s with %s", ([template, given, expected]) => {
  expect(filled(template, given)).toBe(expected)
})

test("does not run commands or fill placeholders in arguments", () => {
  expect(fillTemplate("Say $1", "!`rm x`")).toEqual([{ kind: "text", text: "Say !`rm x`" }])
  expect(filled("$ARGUMENTS", "$1 $& $ARGUMENTS")).toBe("$1 $& $ARGUMENTS")
})

const commands: Command[] = listCommands({
  review: { template: "Review." },
  "team:docs": { template: "Docs." },
})

test("reads a text with a slash as a command of that name", () => {
  expect(findCommand(" /review  src/a.ts\nall ", commands)).toEqual({
    call: { name: "review", template: "Review.", arguments: "src/a.ts\nall" },
  })
  for (const text of ["/team:docs", "/team/docs"])
    expect(findCommand(text, commands)).toMatchObject({ call: { name: "team:docs", arguments: "" } })
})

test("reads any other text as plain text, and reports a similar name", () => {
  expect(findCommand("/reveiw it", commands)).toEqual({ near: "review" })
  for (const text of ["/etc/hosts is wrong", "/", "// review", "review", "see /review", "/constructor"])
    expect(findCommand(text, commands)).toEqual({})
})
