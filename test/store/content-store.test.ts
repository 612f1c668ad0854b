import { once } from "node:events"
import { readdir, stat, utimes, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { createContentDirectory } from "../../src/store/content-directory.ts"
import { type ContentLimits, defaultContentLimits, hashOf } from "../../src/store/content-store.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import { openS3Contents } from "../../src/store/s3-contents.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { forEachConcurrently } from "../../src/util/concurrent.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"
import { isComplete } from "../runs.ts"
import { describeS3, type S3Server, startS3 } from "../s3.ts"
import { testContentStore } from "../suites/content-store.ts"

async function files(root: string): Promise<string[]> {
  const found = await readdir(root, { recursive: true, withFileTypes: true })
  return found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

describe("directory", () => {
  testContentStore(async (limits) => {
    const { directory, remove } = await temporaryProject()
    const pathOf = (hash: string) => join(directory, hash.slice(0, 2), hash)
    return {
      store: createContentDirectory(directory, limits),
      count: async () => (await files(directory)).length,
      setUsed: (hash, time) => utimes(pathOf(hash), time / 1000, time / 1000),
      damage: (hash) => writeFile(pathOf(hash), "damaged"),
      close: remove,
    }
  })

  test("is readable only by the user, and replaces a damaged copy", async () => {
    const project = await temporaryProject()
    const store = createContentDirectory(project.directory)
    const content = Buffer.from("a secret")
    const hash = (await store.put(content)) ?? ""
    const [path = ""] = await files(project.directory)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    await writeFile(path, "another one")
    await store.put(content)
    expect(await store.get(hash)).toEqual(content)
    await project.remove()
  })
})

describePostgres("PostgreSQL", () => {
  let server: PostgresServer
  let count = 0

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  testContentStore(async (limits: ContentLimits) => {
    count += 1
    const schema = `contents_${count}`
    await migratePostgres(server.url(), { schema })
    const store = await openPostgresStore(server.url(), { schema })
    const client = new pg.Client(server.url())
    await client.connect()
    const contents = store.contents?.(limits)
    if (!contents) throw new Error("the store has no contents")
    return {
      store: contents,
      count: async () =>
        Number((await client.query(`SELECT count(*) FROM ${schema}.contents`)).rows[0].count),
      async setUsed(hash, time) {
        await client.query(`UPDATE ${schema}.contents SET used = to_timestamp($2) WHERE hash = $1`, [
          hash,
          time / 1000,
        ])
      },
      async damage(hash) {
        await client.query(`UPDATE ${schema}.contents SET data = 'damaged' WHERE hash = $1`, [hash])
      },
      async close() {
        await client.end()
        await store.close()
      },
    }
  })
})

describeS3("S3-compatible storage", () => {
  let server: S3Server

  beforeAll(async () => {
    server = await startS3()
  })
  afterAll(() => server.stop())

  let count = 0
  testContentStore(async (limits) => {
    count += 1
    const prefix = `test-${count}/`
    return {
      store: await openS3Contents(`s3://${server.bucket}/${prefix}`, limits, server.variables),
      count: async () => (await server.keys(prefix)).length,
      damage: (hash) => server.write(`${prefix}${hash}`, "damaged"),
      async close() {},
    }
  })

  test(`removes only its own objects${isComplete ? ", also from a list of several pages" : ""}`, async () => {
    const limits = { ...defaultContentLimits, days: 7 }
    const store = await openS3Contents(`s3://${server.bucket}/pages`, limits, server.variables)
    // A page of the list has at most 1,000 objects.
    const names = Array.from({ length: isComplete ? 1_001 : 3 }, (_, index) =>
      hashOf(Buffer.from(`content ${index}`)),
    )
    await forEachConcurrently(names, 16, (name) => server.write(`pages/${name}`, ""))
    await server.write("pages/readme.txt", "not a content")
    await server.write("other.txt", "not a content")
    await store.sweep(Date.now() + 8 * 86_400_000)
    expect(await server.keys("pages/")).toEqual(["pages/readme.txt"])
    expect(await server.keys("other")).toEqual(["other.txt"])
  }, 60_000)

  test("reports a connection that ends within an answer", async () => {
    const broken = createServer((_, response) => {
      response.writeHead(200, { "content-length": "1000" })
      response.write("part", () => response.destroy())
    })
    await once(broken.listen(0, "127.0.0.1"), "listening")
    const { port } = broken.address() as AddressInfo
    const variables = { ...server.variables, AWS_ENDPOINT_URL: `http://127.0.0.1:${port}` }
    const store = await openS3Contents(`s3://${server.bucket}`, defaultContentLimits, variables)
    await expect(store.get("a".repeat(64))).rejects.toMatchObject({ code: "store.contents" })
    broken.close()
  })

  test("reports a wrong key, a missing bucket, a server that does not answer, and invalid settings", async () => {
    const open = (url: string, variables: Record<string, string | undefined> = {}) =>
      openS3Contents(url, defaultContentLimits, { ...server.variables, ...variables })
    const put = async (...given: Parameters<typeof open>) => (await open(...given)).put(Buffer.from("a"))
    const bucket = `s3://${server.bucket}`
    await expect(put(bucket, { AWS_ACCESS_KEY_ID: "wrong" })).rejects.toThrow(/responded.*403.*can list/)
    await expect(put("s3://missing-bucket")).rejects.toThrow(/missing-bucket does not exist/)
    await expect(put(bucket, { AWS_ENDPOINT_URL: "http://127.0.0.1:1" })).rejects.toThrow(
      /cannot be reached.*Check AWS_ENDPOINT_URL,/,
    )
    await expect(put(bucket, { AWS_ACCESS_KEY_ID: undefined })).rejects.toThrow(/Set AWS_ACCESS_KEY_ID/)
    await expect(put("https://bucket")).rejects.toMatchObject({ code: "store.contents" })
    await expect(put(bucket, { AWS_ENDPOINT_URL: "nowhere" })).rejects.toThrow(/not a URL/)
    await expect(put(bucket, { AWS_ENDPOINT_URL_S3: "nowhere" })).rejects.toThrow(
      /in AWS_ENDPOINT_URL_S3 is not/,
    )
  })
})
