import { startEngine } from "../session/engine.ts"
import { testTackle } from "../suites/tackle.ts"

testTackle("library", async (script, wanted = {}) => {
  const { tackle, server, project, ...engine } = await startEngine(script, {
    approvals: true,
    questions: true,
    ...wanted,
  })
  return {
    tackle,
    model: server,
    project,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
})
