import { execFile } from "node:child_process"
import { chmodSync, existsSync, readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { describe, expect, onTestFinished, test } from "vitest"
import { startModelServer } from "../../src/testing/model-server.ts"
import { createMachine, type Machine } from "../cli/run-tackle.ts"

const root = resolve(import.meta.dirname, "../..")

describe("run-tests-without-asking.md", () => {
  test("decides the checked commands as the page says", async () => {
    const page = openPage("docs/tasks/run-tests-without-asking.md")
    const machine = await createMachine({ config: null, files: { "tackle.json": page.block("json config") } })
    await machine.trust()
    const [allowed, asked] = page.commands("tackle permission check")
    expect(await sh(machine, allowed)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^allow\n/) })
    expect(await sh(machine, asked)).toMatchObject({ code: 10, stdout: expect.stringMatching(/^ask\n/) })
    const watching = "tackle permission check bash 'npm test -- --watch'"
    expect(await sh(machine, watching)).toMatchObject({ code: 11 })
  })

  test("runs the test command with the flag, and refuses it without", async () => {
    const page = openPage("docs/tasks/run-tests-without-asking.md")
    const calls = [{ name: "bash", arguments: { command: "npm test", description: "Runs the tests" } }]
    const script = [{ calls }, { text: "done" }, { calls }, { text: "done" }]
    const machine = await createMachine({ script, files: { "package.json": '{"scripts":{"test":"true"}}' } })
    const [command = ""] = page.commands("tackle run")
    expect(await sh(machine, command)).toMatchObject({ code: 0 })
    const refused = await sh(machine, command.replace(/--allow '[^']*' /, ""))
    expect(refused.code).toBe(3)
    expect(refused.stderr).toContain("--allow 'bash:npm test'")
  })
})

describe("local-model.md", () => {
  test("checks and runs a declared model that has no tool calling", async () => {
    const page = openPage("docs/tasks/local-model.md")
    const server = await startModelServer({
      models: ["qwen3-coder"],
      script: ({ body }) =>
        body.tools ? { status: 400, text: "does not support tools" } : { text: "I see no files." },
    })
    onTestFinished(() => server.close())
    const config = page.block("json config").replace("http://127.0.0.1:11434/v1", server.url)
    const machine = await createMachine({ config: null })
    await machine.project.write("user.json", config)
    machine.env.TACKLE_CONFIG = machine.project.path("user.json")
    const [check, run] = [...page.commands("tackle models check"), ...page.commands("tackle run")]
    expect((await sh(machine, check)).stdout).toContain("synthetic")
    expect(await sh(machine, run)).toMatchObject({ code: 0, stdout: "I see no files.\n" })
  })
})

describe("python-tool.md", () => {
  test("the tool counts words after the steps of the page", async () => {
    const page = openPage("docs/tasks/python-tool.md")
    const machine = await createMachine({ config: null, files: { "notes.txt": "one two three\n" } })
    await machine.project.write(".tackle/tool/count_words.py", page.block("python"))
    chmodSync(machine.project.path(".tackle/tool/count_words.py"), 0o755)
    await machine.trust()
    const [call] = page.commands("tackle tool call")
    expect(await sh(machine, call)).toMatchObject({ code: 0, stdout: "3 words\n" })
  })
})

describe("use-in-a-product.md", () => {
  test("the program calls its own tool and prints the answer", async () => {
    const server = await startModelServer({
      script: [{ calls: [{ name: "order_status", arguments: { id: "17" } }] }, { text: "It was shipped." }],
    })
    onTestFinished(() => server.close())
    const program = openPage("docs/tasks/use-in-a-product.md")
      .block("ts")
      .replace(
        /model: "anthropic\/[^"]+"/,
        `model: "test/m", providers: { test: { options: { baseURL: "${server.url}", apiKey: "k" } } }`,
      )
    // Within the repository the name "tackle" resolves to the built library.
    const directory = await mkdtemp(join(root, "dist/product-"))
    onTestFinished(() => rm(directory, { recursive: true, force: true }))
    await writeFile(join(directory, "main.ts"), program)
    const env = { PATH: process.env.PATH, HOME: directory, TACKLE_DATA_DIR: join(directory, "data") }
    const { stdout } = await promisify(execFile)(process.execPath, ["main.ts"], { cwd: directory, env })
    expect(stdout).toBe("It was shipped.completed 0\n")
  })
})

describe("undo.md", () => {
  test("restores the file, redoes the change, and shows the session", async () => {
    const page = openPage("docs/tasks/undo.md")
    const write = { name: "write", arguments: { filePath: "new.txt", content: "new" } }
    const machine = await createMachine({ script: [{ calls: [write] }, { text: "written" }] })
    await machine.run(["run", "--auto", "write a file"])
    const file = machine.project.path("new.txt")
    const [undo, redo, list, show] = ["undo", "redo", "list", "show"].map(
      (name) => page.commands(`tackle session ${name}`)[0],
    )
    expect(existsSync(file)).toBe(true)
    expect(await sh(machine, undo)).toMatchObject({ code: 0, stdout: expect.stringContaining("new.txt") })
    expect(existsSync(file)).toBe(false)
    expect(await sh(machine, redo)).toMatchObject({ code: 0 })
    expect(existsSync(file)).toBe(true)
    expect((await sh(machine, list)).stdout).toContain("ses_")
    expect((await sh(machine, show)).stdout).toContain("written")
  })
})

describe("README.md", () => {
  test("the commands work as written, with the tool of the page", async () => {
    const page = openPage("README.md")
    const machine = await createMachine({ config: null, files: { "src/cart.js": "export {}\n" } })
    const [run] = page.commands("tackle run")
    const ran = await sh(machine, run)
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("src/cart.js") })
    const [check] = page.commands("tackle permission check")
    expect(await sh(machine, check)).toMatchObject({ code: 10 })
    await machine.project.write(".tackle/tool/roll.ts", page.block("ts"))
    await machine.trust()
    const [call] = page.commands("tackle tool call")
    expect(await sh(machine, call)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) })
  })
})

/** The blocks of a page. */
function openPage(path: string) {
  const text = readFileSync(join(root, path), "utf8")
  const blocks = (info: string) =>
    [...text.matchAll(/^```([^\n`]+)\n(.*?)^```$/gms)].flatMap(([, kind, body = ""]) =>
      kind === info ? [body] : [],
    )
  return {
    /** The first block of the kind. */
    block(info: string): string {
      const [first] = blocks(info)
      if (first === undefined) throw new Error(`${path} has no block ${info}.`)
      return first
    },
    commands: (start: string) =>
      blocks("sh").flatMap((body) => body.split("\n").filter((line) => line.startsWith(start))),
  }
}

/** Runs a command line of a page in a shell, as a user would. */
function sh(machine: Machine, command: string | undefined) {
  if (command === undefined) throw new Error("The page does not contain the command.")
  const env = { PATH: `${join(root, "bin")}:${machine.env.PATH}` }
  return machine.run(["-c", command], { command: ["sh"], env })
}
