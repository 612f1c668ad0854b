import { readFileSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { createMachine, until } from "./run-tackle.ts"

describePostgres("tackle db", () => {
  let postgres: PostgresServer

  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.stop())

  test("prepares a database, imports sessions, and continues the sessions there", async () => {
    const machine = await createMachine({ script: () => ({ text: "Done." }) })
    const url = postgres.url()
    const env = { TACKLE_DATABASE: url }
    expect((await machine.run(["run", "first"])).code).toBe(0)

    const early = await machine.run(["db", "import", "--database", url])
    expect(early).toMatchObject({ code: 1, stderr: expect.stringContaining("tackle db migrate") })
    expect(await machine.run(["db", "migrate", "--database", url])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Created the tables at version"),
    })
    expect((await machine.run(["db", "migrate"], { env })).stdout).toContain("already at version")
    const copied = await machine.run(["db", "import"], { env })
    expect(copied).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringContaining("1 session copied"),
    })
    expect((await machine.run(["db", "import"], { env })).stdout).toContain("0 sessions copied, 1 already")

    const run = await machine.run(["run", "--database", url, "-c", "second"])
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("Done.") })
    expect(run.stderr).toContain('tackle run --database "…" -s ses_')
    const shown = await machine.run(["session", "show"], { env })
    expect(shown.stdout).toMatch(/first[\s\S]*second/)
    // The data directory is unchanged.
    expect((await machine.run(["session", "show"])).stdout).not.toContain("second")
    expect((await machine.run(["db", "import"], { env })).stdout).toContain("newer version")
  })

  test("shares sessions between two servers", async () => {
    const machine = await createMachine({ script: () => ({ text: "Done." }) })
    const url = postgres.url()
    await machine.run(["db", "migrate", "--database", url])
    const serve = async (data: string) => {
      const started = machine.start(["serve", "--port", "0", "--json", "--database", url], {
        env: { TACKLE_DATA_DIR: join(machine.home, data) },
      })
      await until("the server prints its address", () => started.stdout.includes("\n"))
      const { url: address, tokenFile } = JSON.parse(started.stdout)
      const authorization = `Bearer ${readFileSync(tokenFile, "utf8").trim()}`
      const headers = { authorization, "content-type": "application/json" }
      const post = async (path: string, body: unknown) => {
        const response = await fetch(`${address}${path}`, {
          method: "POST",
          headers,
          body: JSON.stringify(body),
        })
        // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what a test asserts.
        return (await response.json()) as any
      }
      return { post, stop: () => started.child.kill("SIGTERM"), started }
    }
    const [one, two] = [await serve("one"), await serve("two")]
    const { id } = await one.post("/session", { directory: realpathSync(machine.project.directory) })
    await one.post(`/session/${id}/input`, { text: "first" })
    expect((await one.post(`/session/${id}/wait`, {})).run.text).toBe("Done.")
    await two.post(`/session/${id}/input`, { text: "second" })
    expect((await two.post(`/session/${id}/wait`, {})).run.text).toBe("Done.")
    for (const { stop, started } of [one, two]) {
      stop()
      expect(await started.ended).toMatchObject({ code: 0, stderr: "" })
    }
    const shown = await machine.run(["session", "show", id], { env: { TACKLE_DATABASE: url } })
    expect(shown.stdout).toMatch(/first[\s\S]*second/)
  })

  test("names what is missing, without showing a password", async () => {
    const machine = await createMachine()
    expect(await machine.run(["db", "migrate"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("TACKLE_DATABASE"),
    })
    const url = "postgres://me:hidden-password@127.0.0.1:1/tackle"
    for (const args of [
      ["db", "migrate"],
      ["run", "x"],
      ["session", "list"],
      ["serve", "--port", "0"],
    ]) {
      const { code, stdout, stderr } = await machine.run(args, { env: { TACKLE_DATABASE: url } })
      expect([args, code]).toEqual([args, 1])
      expect(stderr).toContain("cannot be reached")
      expect(stdout + stderr).not.toContain("hidden-password")
    }
  })
})
