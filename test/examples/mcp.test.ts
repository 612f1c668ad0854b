import { cpSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { expect, test } from "vitest"
import { createMachine } from "../cli/run-tackle.ts"

const example = resolve(import.meta.dirname, "../../examples/mcp")

test("the server returns what the page says", async () => {
  const machine = await createMachine({ script: [{ text: "Three books." }] })
  cpSync(example, machine.project.directory, { recursive: true })
  const page = readFileSync(`${example}/README.md`, "utf8")
  expect((await machine.run(["mcp", "list"])).stdout).toContain("No MCP servers are available")
  await machine.trust()
  const list = await machine.run(["mcp", "list"])
  expect(page).toContain(`$ tackle mcp list\n${list.stdout}$`)
  const found = await machine.run(["tool", "call", "shelf_find_book", '{"word":"sea"}'])
  expect(found).toMatchObject({ code: 0, stderr: "" })
  expect(page).toContain(`'{"word":"sea"}'\n${found.stdout}\`\`\``)

  // No user can answer.
  const lending = ["tool", "call", "shelf_lend_book", '{"title":"Walden"}']
  expect(await machine.run(lending)).toMatchObject({ code: 3, stdout: "" })
  expect(await machine.run([...lending, "--allow", "shelf_lend_book"])).toMatchObject({
    code: 0,
    stdout: "Walden is lent.\n",
  })

  await machine.run(["run", "what is on @shelf:shelf://books?"])
  expect(JSON.stringify(machine.server.requests[0]?.body)).toContain("The Old Man and the Sea\\nWalden")
})
