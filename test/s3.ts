import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { AwsClient } from "aws4fetch"
import { describe } from "vitest"

/** The program of the package s3rver, which serves the S3 protocol from a directory and checks signatures. */
export const s3Program = resolve(import.meta.dirname, "../node_modules/s3rver/bin/s3rver.js")

/** Defines tests that need an S3 server. Without the package s3rver they are skipped. */
export const describeS3 =
  existsSync(s3Program) || process.env.TACKLE_TEST_COMPLETE === "1" ? describe : describe.skip

/** A server with one empty bucket. */
export interface S3Server {
  bucket: string
  /** Environment variables with the endpoint and the keys. */
  variables: Record<string, string>
  /** Returns the keys of all objects with this prefix, at most 1,000. */
  keys(prefix: string): Promise<string[]>
  write(key: string, text: string): Promise<void>
  stop(): Promise<void>
}

/** Starts a server on a free port of the loopback address. */
export async function startS3(): Promise<S3Server> {
  const bucket = "tackle-contents"
  const directory = mkdtempSync(join(tmpdir(), "tackle-s3-"))
  const options = ["-d", directory, "-a", "127.0.0.1", "-p", "0", "--configure-bucket", bucket]
  // It encrypts the tokens of long lists with DES.
  const child = spawn(process.execPath, ["--openssl-legacy-provider", s3Program, ...options], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  const { promise, resolve: started, reject } = Promise.withResolvers<string>()
  let output = ""
  child.stdout.on("data", (chunk) => {
    output += String(chunk)
    const [address] = /127\.0\.0\.1:\d+/.exec(output) ?? []
    if (address !== undefined) started(address)
  })
  child.once("exit", () => reject(new Error(`s3rver did not start: ${output}`)))
  const address = await promise
  const endpoint = `http://${address}`
  const client = new AwsClient({
    accessKeyId: "S3RVER",
    secretAccessKey: "S3RVER",
    service: "s3",
    region: "us-east-1",
  })
  return {
    bucket,
    variables: {
      AWS_ENDPOINT_URL: endpoint,
      AWS_ACCESS_KEY_ID: "S3RVER",
      AWS_SECRET_ACCESS_KEY: "S3RVER",
    },
    async keys(prefix) {
      const response = await client.fetch(
        `${endpoint}/${bucket}?list-type=2&prefix=${encodeURIComponent(prefix)}`,
      )
      return [...(await response.text()).matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = ""]) => key)
    },
    async write(key, text) {
      await client.fetch(`${endpoint}/${bucket}/${key}`, { method: "PUT", body: text })
    },
    async stop() {
      child.kill()
      await once(child, "exit")
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
