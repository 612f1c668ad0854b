import type { AwsClient } from "aws4fetch"
import { forEachConcurrently } from "../util/concurrent.ts"
import { errorMessage, systemCode } from "../util/errors.ts"
import { dayMs } from "../util/sweep.ts"
import {
  beyondLimits,
  type ContentLimits,
  type ContentStore,
  hashOf,
  isHash,
  type StoredContent,
} from "./content-store.ts"
import { StoreError } from "./store.ts"

type Variables = Readonly<Record<string, string | undefined>>

/** Time limit for one request in milliseconds, including retries and the response body. */
const timeoutMs = 30_000

/**
 * Opens the {@link ContentStore} in S3-compatible storage. `url` has the form `s3://bucket/prefix`. Reads the keys, the
 * region and the endpoint from the AWS environment variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
 * `AWS_SESSION_TOKEN`, `AWS_REGION` or `AWS_DEFAULT_REGION`, and `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`. Needs the
 * package `aws4fetch`. Sends no request before the first use. Throws {@link StoreError} with the code `store.contents`
 * if the package or a key is missing, or if the URL or the endpoint is invalid.
 */
export async function openS3Contents(
  url: string,
  limits: ContentLimits,
  variables: Variables,
): Promise<ContentStore> {
  const { bucket, base, prefix } = locate(url, variables)
  // Contents that are still in use are written again long before a sweep would remove them.
  const renewMs = Math.min(1, limits.days / 7) * dayMs
  const client = await createClient(variables)

  /** Sends a request and reads the whole response, so that the connection can be reused. */
  async function send(
    target: string,
    init: RequestInit = {},
  ): Promise<Pick<Response, "status" | "headers"> & { body: Buffer }> {
    const { method = "GET" } = init
    let response: Response
    let body: Buffer
    try {
      response = await client.fetch(target, { ...init, signal: AbortSignal.timeout(timeoutMs) })
      body = Buffer.from(await response.arrayBuffer())
    } catch (error) {
      throw failed(
        `The storage at ${base} cannot be reached (${reasonOf(error)}). Check ${addressVariable(variables)}, and check that the service is running.`,
        error,
      )
    }
    const { status, headers, ok } = response
    if (ok || status === 404) return { status, headers, body }
    const reason = `${status} ${textOf(body.toString(), "Code") ?? ""}`.trim()
    const advice =
      status === 401 || status === 403
        ? ` Check that the key in AWS_ACCESS_KEY_ID can list, read, write and delete objects in the bucket ${bucket}.`
        : ""
    throw failed(`The storage at ${base} responded to ${method} with ${reason}.${advice}`)
  }

  const addressOf = (hash: string) => `${base}/${prefix}${hash}`

  /** Returns true if the content is complete and will not be removed soon. */
  async function isStored(hash: string, size: number): Promise<boolean> {
    const { status, headers } = await send(addressOf(hash), { method: "HEAD" })
    const writtenAt = Date.parse(headers.get("last-modified") ?? "")
    return (
      status === 200 && Number(headers.get("content-length")) === size && Date.now() - writtenAt < renewMs
    )
  }

  async function list(): Promise<StoredContent[]> {
    const found: StoredContent[] = []
    let token: string | undefined
    do {
      const parameters = new URLSearchParams({ "list-type": "2", prefix })
      if (token !== undefined) parameters.set("continuation-token", token)
      const { status, body } = await send(`${base}?${parameters}`)
      if (status === 404) throw missing(bucket)
      const text = body.toString()
      for (const [entry] of text.matchAll(/<Contents>.*?<\/Contents>/gs)) {
        const [key = "", size, time = ""] = ["Key", "Size", "LastModified"].map((name) => textOf(entry, name))
        // Skips other objects in the bucket.
        const name = key.slice(prefix.length)
        if (key.startsWith(prefix) && isHash(name))
          found.push({ name, size: Number(size), usedAt: Date.parse(time) })
      }
      token = textOf(text, "NextContinuationToken")
    } while (token !== undefined)
    return found
  }

  return {
    isShared: true,
    fileBytes: limits.fileBytes,
    async put(bytes) {
      if (bytes.length > limits.fileBytes) return undefined
      const hash = hashOf(bytes)
      if (await isStored(hash, bytes.length)) return hash
      const { status } = await send(addressOf(hash), {
        method: "PUT",
        body: new Uint8Array(bytes),
        // The service verifies the received bytes with this hash.
        headers: { "x-amz-content-sha256": hash, "content-type": "application/octet-stream" },
      })
      if (status === 404) throw missing(bucket)
      return hash
    },
    async get(hash) {
      if (!isHash(hash)) return undefined
      const { status, body } = await send(addressOf(hash))
      return status !== 404 && hashOf(body) === hash ? body : undefined
    },
    async sweep(now = Date.now()) {
      const removed = beyondLimits(await list(), limits, now)
      await forEachConcurrently(removed, 16, async ({ name }) => {
        await send(addressOf(name), { method: "DELETE" })
      })
    },
  }
}

/** Returns the bucket, its address without a trailing slash, and the prefix of all keys. */
function locate(url: string, variables: Variables): { bucket: string; base: string; prefix: string } {
  const [, bucket, path = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w./-]*))?$/.exec(url) ?? []
  if (bucket === undefined)
    throw failed(
      `The storage URL for file contents is not valid: ${JSON.stringify(url)}. Example: s3://bucket/prefix`,
    )
  const prefix = path === "" || path.endsWith("/") ? path : `${path}/`
  const endpoint = variables.AWS_ENDPOINT_URL_S3 || variables.AWS_ENDPOINT_URL
  if (endpoint && !URL.canParse(endpoint))
    throw failed(
      `The endpoint in ${addressVariable(variables)} is not a URL: ${endpoint}. Example: https://s3.example.com`,
    )
  // Services other than AWS expect the bucket in the path.
  const base = endpoint
    ? `${endpoint.replace(/\/+$/, "")}/${bucket}`
    : `https://${bucket}.s3.${regionOf(variables)}.amazonaws.com`
  return { bucket, base, prefix }
}

/** Returns the name of the variable that determines the storage address. */
function addressVariable({ AWS_ENDPOINT_URL_S3: own, AWS_ENDPOINT_URL: shared }: Variables): string {
  return own ? "AWS_ENDPOINT_URL_S3" : shared ? "AWS_ENDPOINT_URL" : "AWS_REGION"
}

function regionOf({ AWS_REGION, AWS_DEFAULT_REGION }: Variables): string {
  return AWS_REGION || AWS_DEFAULT_REGION || "us-east-1"
}

async function createClient(variables: Variables): Promise<AwsClient> {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = variables
  if (!accessKeyId || !secretAccessKey)
    throw failed(
      "File contents cannot be stored in S3 without a key. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or unset TACKLE_CONTENTS.",
    )
  const { AwsClient: Client } = await loadClient()
  return new Client({
    accessKeyId,
    secretAccessKey,
    sessionToken: variables.AWS_SESSION_TOKEN,
    service: "s3",
    region: regionOf(variables),
    retries: 3,
  })
}

async function loadClient(): Promise<typeof import("aws4fetch")> {
  try {
    return await import("aws4fetch")
  } catch (error) {
    if (systemCode(error) !== "ERR_MODULE_NOT_FOUND") throw error
    throw failed(
      "Storing file contents in S3 needs the package aws4fetch, which is not installed. Install it next to Tackle: npm install aws4fetch",
      error,
    )
  }
}

function failed(message: string, cause?: unknown): StoreError {
  return new StoreError(message, cause, "store.contents")
}

function missing(bucket: string): StoreError {
  return failed(`The bucket ${bucket} does not exist. Create it, or change TACKLE_CONTENTS.`)
}

/**
 * Returns the text of the first element with this name, without decoding it, because keys, times and tokens contain no
 * markup.
 */
function textOf(xml: string, name: string): string | undefined {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
}

/** Returns the reason for a failed request, which `fetch` reports only as the cause of its error. */
function reasonOf(error: unknown): string {
  return errorMessage(error instanceof Error && error.cause ? error.cause : error)
}
