import { expect, onTestFinished } from "vitest"
import { apiDocument } from "../../scripts/api-page.ts"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import { type Document, operationsOf } from "../../src/server/reference-page.ts"
import { type ServerOptions, startServer } from "../../src/server/server.ts"
import type { Scope } from "../../src/server/tokens.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type Script, startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { realPath } from "../../src/util/paths.ts"

export const tokens = {
  read: "read-token-0123456789abcdef0123456789",
  reply: "reply-token-0123456789abcdef012345678",
  run: "run-token-0123456789abcdef0123456789a",
  admin: "admin-token-0123456789abcdef012345678",
} satisfies Record<Scope, string>

export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an answer is what a test asserts.
  body: any
}

export interface RequestOptions {
  scope?: Scope
  body?: unknown
  headers?: Record<string, string>
}

/** Starts a server with a scripted model and one project. All of it ends with the test. */
export async function setUp(
  script: Script = [],
  {
    engine = {},
    files = {},
    ...options
  }: Partial<ServerOptions> & { engine?: Partial<TackleOptions>; files?: Record<string, string> } = {},
) {
  const model = await startModelServer({ script })
  const project = await temporaryProject(files)
  const data = await temporaryProject({})
  const directory = realPath(project.directory)
  const store = options.store ?? createMemoryStore()
  const problems: string[] = []
  const server = await startServer({
    version: "1.0.0",
    store,
    openEngine: (opened) =>
      createTackle({
        directory: opened,
        dataDirectory: data.directory,
        store,
        model: "test/m",
        providers: { test: { options: { baseURL: model.url, apiKey: "k" }, models: { m: {}, other: {} } } },
        approvals: true,
        questions: true,
        ...engine,
      }),
    roots: [directory],
    tokens: Object.entries(tokens).map(([scope, token]) => ({ scope: scope as Scope, token })),
    port: 0,
    onProblem: (message, error) => problems.push(`${message}: ${String(error)}`),
    ...options,
  })
  onTestFinished(async () => {
    await server.close()
    await model.close()
    await project.remove()
    await data.remove()
  })

  async function request(
    method: string,
    path: string,
    { scope = "admin", body, headers }: RequestOptions = {},
  ): Promise<Answer> {
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${tokens[scope]}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
    })
    const text = await response.text()
    const isJson = response.headers.get("content-type")?.startsWith("application/json")
    const json = isJson && text !== "" ? JSON.parse(text) : text
    const undocumented = undocumentedError({ method, path, status: response.status, code: json?.error?.code })
    expect(undocumented).toBeUndefined()
    return { status: response.status, headers: response.headers, body: json }
  }

  return {
    server,
    store,
    model,
    project,
    directory,
    problems,
    request,
    get: (path: string, options?: RequestOptions) => request("GET", path, options),
    post: (path: string, body: unknown = {}, options?: RequestOptions) =>
      request("POST", path, { body, ...options }),
    /** Creates a session in the project and returns its path. */
    async session(): Promise<string> {
      const { body } = await request("POST", "/session", { body: { directory } })
      return `/session/${body.id}`
    },
  }
}

let document: Document | undefined

/** Returns the error of an answer if the OpenAPI document describes the route, but not this error. */
function undocumentedError(answer: { method: string; path: string; status: number; code?: string }) {
  const { method, path, status, code } = answer
  if (code === undefined || status === 500) return undefined
  document ??= apiDocument()
  const [pathname = ""] = path.split("?")
  const operations = operationsOf(document).filter(
    (each) =>
      each.method === method && new RegExp(`^${each.path.replace(/\{\w+\}/g, "[^/]+")}$`).test(pathname),
  )
  const isKnown = operations.some(({ operation }) =>
    operation.responses[status]?.description.includes(`\`${code}\``),
  )
  return operations.length === 0 || isKnown ? undefined : answer
}

/** A message of an event stream. */
export interface ServerEvent {
  id?: string
  // biome-ignore lint/suspicious/noExplicitAny: the shape of an event is what a test asserts.
  data: any
}

/** Reads an event stream. Leaving the loop closes the connection. */
export async function* readEvents(
  url: string,
  {
    token = tokens.read,
    lastEventID,
    signal,
  }: { token?: string; lastEventID?: string; signal?: AbortSignal } = {},
): AsyncGenerator<ServerEvent | string> {
  const controller = new AbortController()
  const response = await fetch(url, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(lastEventID !== undefined && { "last-event-id": lastEventID }),
    },
    signal: signal ? AbortSignal.any([signal, controller.signal]) : controller.signal,
  })
  if (!response.ok || !response.body) throw new Error(`${response.status} ${await response.text()}`)
  try {
    let text = ""
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      text += chunk
      const messages = text.split("\n\n")
      text = messages.pop() ?? ""
      for (const message of messages) {
        const fields = new Map(
          message.split("\n").map((line) => {
            const at = line.indexOf(": ")
            return [line.slice(0, at), line.slice(at + 2)] as const
          }),
        )
        const data = fields.get("data")
        if (data === undefined) yield message
        else yield { id: fields.get("id"), data: JSON.parse(data) }
      }
    }
  } finally {
    controller.abort()
  }
}
