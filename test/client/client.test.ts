import { createClient } from "../../src/client/client.ts"
import { setUp, tokens } from "../server/start-server.ts"
import { testTackle } from "../suites/tackle.ts"

testTackle("client", async (script, wanted = {}) => {
  const { server, model, project, directory, problems } = await setUp(script, { engine: wanted })
  return {
    tackle: createClient({ url: server.url, token: tokens.admin, directory }),
    model,
    project,
    async [Symbol.asyncDispose]() {
      if (problems.length > 0) throw new Error(problems.join("\n"))
    },
  }
})
