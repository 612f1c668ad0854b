/** Prompts a session in its own process, so that a test can kill it. Prints `running` when a tool has started. */
import { createTackle } from "../../src/engine/create-tackle.ts"

const [directory = "", url = "", text = "go"] = process.argv.slice(2)
const tackle = await createTackle({
  directory,
  dataDirectory: `${directory}/.data`,
  model: "test/m",
  providers: { test: { options: { baseURL: url, apiKey: "k" }, models: { m: {} } } },
  permission: { "*": "allow" },
})
const session = await tackle.sessions.create()
for await (const event of session.prompt(text)) {
  if (event.type === "part.updated" && event.part.type === "tool" && event.part.state.status === "running")
    process.stdout.write("running\n")
}
await tackle.close()
