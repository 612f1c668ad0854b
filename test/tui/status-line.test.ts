import { stripVTControlCharacters } from "node:util"
import { expect, test, vi } from "vitest"
import type { ProjectStatus } from "../../src/engine/tackle.ts"
import type { Message } from "../../src/schema/message.ts"
import { createStatusLine } from "../../src/tui/status-line.ts"
import { createSessionState } from "../../src/view/session-state.ts"
import { aSession } from "../suites/records.ts"
import { theme } from "./components.ts"

const answer: Message = {
  ...{
    id: "msg_2",
    sessionID: "ses_1",
    role: "assistant",
    parentID: "msg_1",
    agent: "build",
    cost: 0.04,
    finish: "stop",
  },
  ...{ model: { providerID: "p", modelID: "m" }, time: { created: 1 }, path: { cwd: "/w", root: "/w" } },
  tokens: { input: 12_000, output: 300, reasoning: 0, cache: { read: 0, write: 0 } },
}
const state = createSessionState({ session: aSession("ses_1"), messages: [{ message: answer, parts: [] }] })
const facts = { agent: "build", model: "p/m", hint: "" }
const works: ProjectStatus["sandbox"] = { works: true, kind: "bubblewrap" }

/** Shows a project. Returns the line when the project is known. */
async function lineOf(project: Partial<ProjectStatus>, width = 100): Promise<string> {
  const onChange = vi.fn()
  const line = createStatusLine({
    api: {
      models: () => [{ ref: { providerID: "p", modelID: "m" }, name: "m", limit: { context: 200_000 } }],
      project: async () => ({ directory: "/w", worktree: "/w", sandbox: works, ...project }),
    },
    ...{ theme, source: { directory: "/w" }, onProblem() {}, onChange },
  })
  line.render(state, facts, width)
  await vi.waitUntil(() => onChange.mock.calls.length >= 2)
  line.close()
  return stripVTControlCharacters(line.render(state, facts, width)).trimEnd()
}

test("shows the agent, the model, the context, the cost, the sandbox and the branch", async () => {
  expect(await lineOf({ branch: "main" })).toBe("build · p/m · 12.3k tokens (6%) · $0.040 · sandbox · main")
  expect(await lineOf({ sandbox: { works: false, reason: "off" } })).toBe(
    "build · p/m · 12.3k tokens (6%) · $0.040 · no sandbox",
  )
})

test("leaves out the last facts on a narrow screen", async () => {
  expect(await lineOf({ branch: "main" }, 54)).toBe("build · p/m · 12.3k tokens (6%) · $0.040 · sandbox")
  expect(await lineOf({ branch: "main" }, 20)).toBe("build · p/m")
})
