import { expect, test } from "vitest"
import { argumentsOf, lineOf } from "../../../src/mcp/server/prompts.ts"
import { splitWords } from "../../../src/session/command.ts"
import { realServer } from "../client/servers.ts"
import { connectClient, openEngine } from "./connect.ts"

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

test("offers commands with the arguments of their hint, and attaches mentioned files and images", async () => {
  const engine = await openEngine(
    {
      permission: { "*": "allow" },
      commands: {
        review: {
          template: "Review $1 with care: $2\nSee @$1 and @picture.png",
          description: "Looks at a file",
          argument_hint: "<file> [why]",
        },
        plain: { template: "Say hello." },
      },
    },
    { "a b.txt": "one\ntwo\n", "c.txt": "three\n" },
  )
  await engine.project.write("picture.png", Buffer.from(pixel, "base64"))
  const { client } = await connectClient(engine)
  const { prompts } = await client.listPrompts()
  expect(prompts.find(({ name }) => name === "review")).toEqual({
    name: "review",
    description: "Looks at a file",
    arguments: [
      { name: "file", required: true },
      { name: "why", required: false },
    ],
  })
  const { messages } = await client.getPrompt({
    name: "review",
    arguments: { file: "c.txt", why: "it is old" },
  })
  expect(messages.map(({ content }) => content)).toEqual([
    { type: "text", text: "Review c.txt with care: it is old\nSee @c.txt and @picture.png" },
    {
      type: "resource",
      resource: { uri: expect.stringMatching(/^file:.*c\.txt$/), mimeType: "text/plain", text: "three\n" },
    },
    { type: "image", mimeType: "image/png", data: pixel },
  ])
  expect((await client.getPrompt({ name: "plain" })).messages).toHaveLength(1)
  await expect(client.getPrompt({ name: "review" })).rejects.toThrow('"file" is missing')
  await expect(client.getPrompt({ name: "plain", arguments: { odd: "1" } })).rejects.toThrow(
    "Unknown argument",
  )
  await expect(client.getPrompt({ name: "none" })).rejects.toThrow("Unknown prompt")
})

test("asks for permission to run the shell lines of a prompt", async () => {
  const commands = { state: { template: "State: !`echo fine`" }, secret: { template: "See @.env" } }
  const engine = await openEngine({ permission: { bash: "ask" }, commands }, { ".env": "KEY=hidden-word" })
  const asked: string[] = []
  const { client } = await connectClient(engine, { elicitation: { form: {} } }, (made) =>
    made.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push(params.message)
      const answer = asked.length === 1 ? "once" : "reject"
      return { action: "accept", content: { answer } }
    }),
  )
  const text = async (name: string) => JSON.stringify((await client.getPrompt({ name })).messages)
  expect(await text("state")).toContain("State: fine")
  expect(asked[0]).toContain("echo fine")
  expect(await text("state")).toContain("The user refused")
  // Protected files always ask.
  const received = await text("secret")
  expect(received).toContain("was not attached")
  expect(received).not.toContain("hidden-word")

  const { client: silent } = await connectClient(engine)
  const refused = JSON.stringify((await silent.getPrompt({ name: "state" })).messages)
  expect(refused).toMatch(/no user is available here/)
})

test("passes on prompts of upstream MCP servers", async () => {
  const engine = await openEngine({ mcp: { everything: realServer("everything").settings } })
  const { client } = await connectClient(engine)
  const { prompts } = await client.listPrompts()
  expect(prompts.map(({ name }) => name)).toContain("everything:args-prompt")
  const { messages } = await client.getPrompt({
    name: "everything:args-prompt",
    arguments: { city: "Oslo" },
  })
  expect(JSON.stringify(messages)).toContain("Oslo")
})

test("offers skills to a client that may load them", async () => {
  const skill = "---\nname: tidy\ndescription: Keeps order.\n---\nPut things where they belong.\n"
  const { project } = await openEngine({}, { "tidy/SKILL.md": skill })
  const skillFiles = [{ path: project.path("tidy/SKILL.md") }]
  const engine = await openEngine({ permission: { skill: "allow" }, skillFiles })
  const { client } = await connectClient(engine)
  expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["tidy"])
  const { messages } = await client.getPrompt({ name: "tidy" })
  expect(JSON.stringify(messages)).toContain("Put things where they belong.")

  const without = { ...engine, connection: { ...engine.connection, tools: ["read"] } }
  const { client: bound } = await connectClient(without)
  expect((await bound.listPrompts()).prompts).toEqual([])
})

test("completes arguments with paths that may be listed", async () => {
  const engine = await openEngine(
    { permission: { list: { "*": "allow", "**/private": "deny" } }, commands: { look: { template: "$1" } } },
    { "src/one.ts": "", "src/other.ts": "", "src/deep/x": "", ".hidden": "", "private/key.pem": "" },
  )
  const { client } = await connectClient(engine)
  const from = async (value: string) => {
    const ref = { type: "ref/prompt" as const, name: "look" }
    return (await client.complete({ ref, argument: { name: "argument1", value } })).completion.values
  }
  expect(await from("src/o")).toEqual(["src/one.ts", "src/other.ts"])
  expect(await from("src/")).toEqual(["src/deep/", "src/one.ts", "src/other.ts"])
  expect(await from("")).toEqual(["private/", "src/"])
  expect(await from("private/")).toEqual([])
  expect(await from("../")).toEqual([])
  expect(await from("none/x")).toEqual([])
})

test.each([
  [{ template: "$2 $1" }, ["argument1", "argument2"]],
  [{ template: "all: $ARGUMENTS" }, ["arguments"]],
  [{ template: "nothing", argument_hint: "what to do" }, ["arguments"]],
  [{ template: "$1", argument_hint: "[issue number] <name>" }, ["issue number", "name"]],
])("the arguments of %j are %j", (command, names) => {
  expect(argumentsOf({ name: "c", ...command }).map(({ name }) => name)).toEqual(names)
})

test("quotes values with spaces and quotes", () => {
  const known = [{ name: "a" }, { name: "b" }, { name: "rest" }]
  const values = { a: "it's mine", b: "", rest: 'all "that" is left' }
  expect(splitWords(lineOf(known, values)).slice(0, 2)).toEqual(["it's mine", ""])
  expect(lineOf(known, values)).toMatch(/all "that" is left$/)
  expect(() => lineOf(known, { a: `both " and '`, b: "x" })).toThrow("both single and double quotes")
})
