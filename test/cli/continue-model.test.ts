import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

test("uses the model of -m for the session, and continues with the model of the last run", async () => {
  const machine = await createMachine({ script: () => ({ text: "ok" }) })
  const provider = {
    test: { options: { baseURL: machine.server.url, apiKey: "k" }, models: { m: {}, a: {}, b: {} } },
  }
  const env = { TACKLE_CONFIG_CONTENT: JSON.stringify({ model: "test/m", provider }) }
  const asked = async (...args: string[]) => {
    expect(await machine.run(["run", ...args, "hello"], { env })).toMatchObject({ code: 0 })
    return machine.server.requests.at(-1)?.body.model
  }
  expect(await asked()).toBe("m")
  expect(await asked("-c", "-m", "test/a")).toBe("a")
  expect(await asked("-c")).toBe("a")
  const { stdout } = await machine.run(["session", "list", "--format", "json"])
  const [{ id, model }] = JSON.parse(stdout).sessions
  expect(model).toEqual({ providerID: "test", modelID: "a" })
  expect(await asked("-s", id, "-m", "test/b")).toBe("b")
  expect(machine.server.requests.at(-1)?.body.messages.filter(({ role }) => role === "user")).toHaveLength(4)
  const wrong = await machine.run(["run", "-c", "-m", "test/none", "hello"], { env })
  expect(wrong.code).toBe(2)
  expect(wrong.stderr).toContain("test/none")
  expect(await asked("-c")).toBe("b")
  // A new session does not inherit the model.
  expect(await asked()).toBe("m")
})
