import { expect, test } from "vitest"
import { readCommand } from "../../src/engine/prompt-command.ts"
import type { McpPrompt } from "../../src/mcp/client/content.ts"

const triage: McpPrompt = {
  server: "tickets",
  name: "triage",
  arguments: [
    { name: "id", required: true },
    { name: "manner", required: false },
  ],
}
const hello: McpPrompt = { server: "tickets", name: "hello", arguments: [] }

/** A server that answers with its arguments. `asked` counts its calls. */
function source() {
  const asked = { lists: 0 }
  return {
    asked,
    servers: ["tickets"],
    list: async () => {
      asked.lists += 1
      return [triage, hello]
    },
    fill: async ({ arguments: args }: { arguments: Record<string, string> }) => [
      { role: "user" as const, text: JSON.stringify(args), attachments: [] },
    ],
  }
}

test.for<[text: string, given: string]>([
  ["/tickets:triage BUG-1", '{"id":"BUG-1"}'],
  ["/tickets:triage 'BUG 1' in two words", '{"id":"BUG 1","manner":"in two words"}'],
])("%s", async ([text, given]) => {
  const read = await readCommand(text, [], source())
  expect(read).toMatchObject({ call: { origin: "mcp", template: given, arguments: "" } })
})

test("passes the text after a prompt without arguments to the model", async () => {
  expect(await readCommand("/tickets:hello to all", [], source())).toMatchObject({
    call: { template: "{}", arguments: "to all" },
  })
})

test("shows the usage for a missing argument", async () => {
  await expect(readCommand("/tickets:triage", [], source())).rejects.toThrow(
    'requires the argument "id". Write /tickets:triage <id> [manner]',
  )
})

test("prefers a command, and asks servers only if one is named", async () => {
  const tickets = source()
  const own = { name: "tickets:triage", template: "Mine." }
  expect(await readCommand("/tickets:triage", [own], tickets)).toMatchObject({ call: { template: "Mine." } })
  for (const text of [
    "/other:triage x",
    "/tickets",
    "no command",
    "/etc/tickets:triage",
    "/tickets/triage x",
  ])
    expect(await readCommand(text, [], tickets)).toEqual({})
  expect(tickets.asked.lists).toBe(0)
  expect(await readCommand("/tickets:triag x", [], tickets)).toEqual({ near: "tickets:triage" })
})

test("names the role of each message if both occur", async () => {
  const messages = [
    { role: "user" as const, text: "Hello", attachments: [] },
    { role: "assistant" as const, text: "Yes?", attachments: [] },
  ]
  expect(await readCommand("/tickets:hello", [], { ...source(), fill: async () => messages })).toMatchObject({
    call: { template: "[user]\nHello\n\n[assistant]\nYes?" },
  })
})
