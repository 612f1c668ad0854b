/**
 * Runs an engine with one custom tool, answers permission requests in code, and stores sessions in memory. The model is
 * scripted, so no key is needed. Run it with `node examples/library/main.ts`.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createTackle, Tool } from "tackle"
import { createMemoryStore } from "tackle/store/memory"
import { startModelServer } from "tackle/testing"
import { z } from "zod"

const weather = Tool.define("weather", {
  description: "Returns the weather in a city.",
  parameters: z.object({ city: z.string().describe("Its English name") }),
  async execute({ city }, ctx) {
    await ctx.metadata({ title: `asking about ${city}` })
    return { title: city, output: `It rains in ${city}.`, metadata: { rain: true } }
  },
})

// Replaces a real model: reads a file, calls the tool, then answers.
const server = await startModelServer({
  script: [
    { calls: [{ name: "read", arguments: { filePath: "trip.txt" } }] },
    { calls: [{ name: "weather", arguments: { city: "Bergen" } }] },
    { text: "Take an umbrella." },
  ],
})

const directory = await mkdtemp(join(tmpdir(), "tackle-example-"))
await writeFile(join(directory, "trip.txt"), "On Friday to Bergen.\n")

const tackle = await createTackle({
  directory,
  dataDirectory: join(directory, ".data"),
  store: createMemoryStore(),
  model: "script/m",
  providers: { script: { options: { baseURL: server.url } } },
  tools: [weather],
})

// By default, reading is allowed, and Tackle asks about custom tools. To allow the tool, set `permission: { weather: "allow" }`.
tackle.on("permission.asked", async (request) => {
  console.log(`asked: ${request.permission} ${request.patterns.join(" ")}`)
  await request.reply(request.permission === "weather" ? "once" : "reject")
})

const session = await tackle.sessions.create()
for await (const event of session.prompt("What do I need for my trip?")) {
  if (event.type === "part.updated" && event.part.type === "tool") {
    const { tool, state } = event.part
    if (state.status === "completed") console.log(`${tool}: ${state.title}`)
    if (state.status === "error") console.log(`${tool} failed: ${state.error}`)
  }
  if (event.type === "run.completed") console.log(`${event.status}: ${event.text}`)
}

await tackle.close()
await server.close()
await rm(directory, { recursive: true })
