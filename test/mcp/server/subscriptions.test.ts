import { readFileSync } from "node:fs"
import { readFile, rename, rm, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Client } from "@modelcontextprotocol/client"
import { expect, test, vi } from "vitest"
import { temporaryProject } from "../../../src/testing/project.ts"
import { scriptedServer } from "../client/servers.ts"
import { connectClient, openEngine } from "./connect.ts"

const waiting = { timeout: 10_000, interval: 20 }

/** Connects a client and records its notifications as file names or URIs. */
async function watching(engine: Awaited<ReturnType<typeof openEngine>>) {
  const received: string[] = []
  const connected = await connectClient(
    { ...engine, connection: { ...engine.connection, watchMs: 20 } },
    {},
    (client: Client) =>
      client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
        received.push(params.uri.split("/").at(-1) ?? "")
      }),
  )
  const uri = (name: string) => ({ uri: pathToFileURL(engine.project.path(name)).href })
  return { ...connected, received, uri }
}

test("reports changes, creation, replacement and deletion of a file until the client unsubscribes", async () => {
  const engine = await openEngine({}, { "a.txt": "one", "b.txt": "one" })
  const { client, received, uri } = await watching(engine)
  const path = engine.project.path
  const times = (name: string) => received.filter((each) => each === name).length
  await client.subscribeResource(uri("a.txt"))
  await client.subscribeResource(uri("later.txt"))
  await writeFile(path("a.txt"), "three")
  await vi.waitFor(() => expect(received).toContain("a.txt"), waiting)
  await writeFile(path("later.txt"), "here")
  await vi.waitFor(() => expect(received).toContain("later.txt"), waiting)
  const before = times("a.txt")
  await rename(path("b.txt"), path("a.txt"))
  await vi.waitFor(() => expect(times("a.txt")).toBeGreaterThan(before), waiting)

  await client.unsubscribeResource(uri("a.txt"))
  const [seen, later] = [times("a.txt"), times("later.txt")]
  await writeFile(path("a.txt"), "not received")
  await rm(path("later.txt"))
  await vi.waitFor(() => expect(times("later.txt")).toBeGreaterThan(later), waiting)
  expect(times("a.txt")).toBe(seen)
  expect(engine.problems).toEqual([])
})

test("watches only files that may be read, also after a link changes", async () => {
  const engine = await openEngine(
    { permission: { read: { "*": "allow", "*secret*": "deny" } } },
    { "secret.txt": "one", "a.txt": "one", "b.txt": "one" },
  )
  const { client, received, uri } = await watching(engine)
  await expect(client.subscribeResource(uri("secret.txt"))).rejects.toThrow("denied by a rule")
  await expect(client.subscribeResource({ uri: "odd:thing" })).rejects.toThrow("Unknown resource")
  const path = engine.project.path
  await client.subscribeResource(uri("a.txt"))
  await client.subscribeResource(uri("b.txt"))
  await rm(path("a.txt"))
  await symlink(path("secret.txt"), path("a.txt"))
  const times = (name: string) => received.filter((each) => each === name).length
  /** Resolves when both were checked. */
  async function changeOther(): Promise<void> {
    const seen = times("b.txt")
    await writeFile(path("b.txt"), `${seen} times`)
    await vi.waitFor(() => expect(times("b.txt")).toBeGreaterThan(seen), waiting)
  }
  await changeOther()
  const before = times("a.txt")
  expect(before).toBeGreaterThan(0)
  await writeFile(path("secret.txt"), "changed")
  await changeOther()
  expect(times("a.txt")).toBe(before)
})

test("limits a client to 100 subscriptions", async () => {
  const { client, uri } = await watching(await openEngine())
  for (let index = 0; index < 100; index += 1) await client.subscribeResource(uri(`${index}.txt`))
  await expect(client.subscribeResource(uri("one-more.txt"))).rejects.toThrow("The limit of 100")
  await client.subscribeResource(uri("7.txt"))
  await client.unsubscribeResource(uri("7.txt"))
  await client.subscribeResource(uri("one-more.txt"))
})

test("passes on changes of upstream resources, also after the server restarted", async () => {
  const news = await temporaryProject({ "news.txt": "one", log: "" })
  const command = [
    process.execPath,
    join(import.meta.dirname, "../client/changing-server.ts"),
    news.path("news.txt"),
    news.path("log"),
  ]
  const mcp = { changing: { type: "local" as const, command } }
  const engine = await openEngine({ mcp, permission: { "*": "allow" } })
  const [first, second, deaf] = [await watching(engine), await watching(engine), await watching(engine)]
  const named = { uri: "news://today" }
  await first.client.subscribeResource(named)
  await second.client.subscribeResource(named)
  await writeFile(news.path("news.txt"), "two")
  await vi.waitFor(() => expect([first.received, second.received]).toEqual([["today"], ["today"]]), waiting)
  expect(deaf.received).toEqual([])

  await second.client.unsubscribeResource(named)
  expect(await readFile(news.path("log"), "utf8")).toBe("subscribe\nsubscribe\n")
  await first.client.callTool({ name: "changing_crash", arguments: {} })
  await first.client.readResource(named)
  // Changes during the restart were not reported.
  await vi.waitFor(() => expect(first.received).toHaveLength(2), waiting)
  await writeFile(news.path("news.txt"), "three")
  await vi.waitFor(() => expect(first.received).toHaveLength(3), waiting)
  expect(second.received).toHaveLength(1)

  await first.close()
  await vi.waitFor(() => expect(readFileSync(news.path("log"), "utf8")).toMatch(/unsubscribe\n$/), waiting)
  await news.remove()
})

test("rejects a watch at a server that does not report changes", async () => {
  const { id, settings } = scriptedServer("/dev/null")
  const engine = await openEngine({ mcp: { [id]: settings } })
  const watch = { server: id, uri: "x:y", onChanged: () => {} }
  await expect(engine.tackle.watchMcpResource(watch)).rejects.toThrow("does not report changes")
})
