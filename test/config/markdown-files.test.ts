import { expect, test } from "vitest"
import { markdownDefinition } from "../../src/config/markdown-files.ts"

test.each([
  ["/p/.tackle/agent/review.md", { holds: "agent", name: "review", dialect: "tackle" }],
  ["/p/.opencode/command/team/review.md", { holds: "command", name: "team:review", dialect: "opencode" }],
  // A command in folders that are named like a folder of agents.
  ["/p/.tackle/command/claude/agents/x.md", { holds: "command", name: "claude:agents:x", dialect: "tackle" }],
  // A project below such folders.
  ["/home/me/opencode/agents/shop/.claude/commands/x.md", { holds: "command", name: "x", dialect: "claude" }],
  ["/home/me/.config/tackle/agent/x.md", { holds: "agent", name: "x", dialect: "tackle" }],
])("%s", (path, place) => {
  expect(markdownDefinition(path)).toEqual(place)
})

test.each([
  "/p/.tackle/skill/x.md",
  "/p/.tackle/agent/.hidden.md",
  "/p/.tackle/agent/x.txt",
  "/p/agent/x.md",
])("finds no definition in %s", (path) => {
  expect(markdownDefinition(path)).toBeUndefined()
})
