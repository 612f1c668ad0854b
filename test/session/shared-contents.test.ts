import { afterAll, beforeAll, expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { describeS3, type S3Server, startS3 } from "../s3.ts"
import { run } from "./run.ts"

/**
 * Lets one engine change files with a tool and a command. A second engine with another data directory, as on another
 * machine, then undoes the turn and shows its diff.
 */
async function undoElsewhere(options: Partial<TackleOptions>): Promise<void> {
  const project = await temporaryProject({ "a.txt": "old\n", "b.txt": "old\n" })
  const server = await startModelServer({
    script: [
      {
        calls: [
          { name: "write", arguments: { filePath: "new.txt", content: "new\n" } },
          {
            name: "bash",
            arguments: { command: "echo new > a.txt; rm b.txt; echo key=$AWS_SECRET_ACCESS_KEY" },
          },
        ],
      },
      { text: "done" },
    ],
  })
  const open = (machine: string) =>
    createTackle({
      directory: project.directory,
      dataDirectory: project.path(machine),
      model: "test/m",
      providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
      permission: { "*": "allow" },
      sandbox: "off",
      ...options,
    })
  const [one, two] = [await open(".one"), await open(".two")]
  try {
    const { session } = await run({ tackle: one })
    expect(await project.read("a.txt")).toBe("new\n")
    const other = await two.sessions.get(session.id)
    const diffs = await two.sessions.diff(session.id)
    expect(diffs?.map(({ diff }) => diff === undefined)).toEqual([false, false, false])
    await other?.undo()
    expect([await project.read("a.txt"), await project.read("b.txt")]).toEqual(["old\n", "old\n"])
    await expect(project.read("new.txt")).rejects.toThrow("ENOENT")
    const key = options.environment?.AWS_SECRET_ACCESS_KEY
    if (key !== undefined) expect(JSON.stringify(await one.store.messages(session.id))).toContain("key=\\n")
  } finally {
    await Promise.all([one.close(), two.close()])
    await server.close()
    await project.remove()
  }
}

describePostgres("file contents in the database of the sessions", () => {
  let postgres: PostgresServer
  beforeAll(async () => {
    postgres = await startPostgres()
    await migratePostgres(postgres.url())
  })
  afterAll(() => postgres.stop())

  test("are found by an engine on another machine", async () => {
    const store = await openPostgresStore(postgres.url())
    await undoElsewhere({ store })
    await store.close()
  })
})

describeS3("file contents in S3-compatible storage", () => {
  let s3: S3Server
  beforeAll(async () => {
    s3 = await startS3()
  })
  afterAll(() => s3.stop())

  test("are found by an engine on another machine, and commands do not see the keys", () =>
    undoElsewhere({
      store: createMemoryStore(),
      contents: `s3://${s3.bucket}/undo`,
      environment: { ...process.env, ...s3.variables },
    }))
})
