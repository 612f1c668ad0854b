import { delimiter, isAbsolute } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import {
  type CallToolResult,
  Client,
  type GetPromptResult,
  type Progress,
  type Prompt,
  type ReadResourceResult,
  type Resource,
  type ResourceTemplateType,
  SdkError,
  SdkErrorCode,
  specTypeSchemas,
  type Tool,
} from "@modelcontextprotocol/client"
import * as z from "zod"
import { abortedError } from "../../util/abort.ts"
import { findProgram, type ProgramLocations, programDirectories } from "../../util/find-program.ts"
import { isRecord, parseJson } from "../../util/json.ts"
import type { RecordTree } from "../../util/process.ts"
import { longestTimerMs } from "../../util/time.ts"
import type { McpServer, RemoteServer } from "./config.ts"
import { McpCallError, McpServerError } from "./errors.ts"
import { createAuthorizer } from "./oauth/provider.ts"
import type { TokenStore } from "./oauth/token-store.ts"
import { createPendingCalls, type IdleTimeout, idleTimeoutMs, type McpCall } from "./pending-calls.ts"
import { answerRequests, requestCapabilities } from "./server-requests.ts"
import { readTolerantly } from "./tolerant-replies.ts"
import {
  createHttpTransport,
  createProcessTransport,
  createSseTransport,
  type ServerTransport,
} from "./transports.ts"

/** The server to connect to, its environment, and callbacks for its notifications. */
export interface ConnectOptions {
  server: McpServer
  /** Working directory for server programs. Absolute path with links resolved. */
  worktree: string
  /** Whether programs inside the worktree may run. */
  trusted: boolean
  /** Base environment for server programs. The server's own variables are added. */
  environment: Readonly<Record<string, string | undefined>>
  /** Records the server process, so that a later process can end the server if this process is killed. */
  record: RecordTree
  tokens: TokenStore
  onToolsChanged(): void
  /** Called for each tool that cannot be used because its definition does not follow the protocol. */
  onProblem(error: unknown): void
  /** Called when the server reports a change to a watched resource. */
  onResourceChanged(uri: string): void
  /** Cancels the connection attempt and the listing of tools. */
  signal: AbortSignal
}

/** The resources that a server lists, and its URI templates for unlisted resources. */
export interface ResourceList {
  resources: Resource[]
  templates: ResourceTemplateType[]
}

/**
 * A connected server. Requests reject with `McpCallError`. If the signal aborts, requests reject with the error of
 * `abortedError`, and the server is notified of the cancellation.
 */
export interface McpConnection {
  /** The features that the server declares. */
  readonly has: { tools: boolean; resources: boolean; prompts: boolean }
  /** Lists all tools. Throws `McpServerError` if the server does not list its tools. */
  tools(): Promise<Tool[]>
  /** Calls a tool. An error that the tool itself reports is returned as a result. */
  call(call: McpCall): Promise<CallToolResult>
  resources(signal: AbortSignal): Promise<ResourceList>
  readResource(uri: string, signal: AbortSignal): Promise<ReadResourceResult>
  /** Asks the server to report changes to the resource. */
  watchResource(uri: string, signal: AbortSignal): Promise<void>
  unwatchResource(uri: string, signal: AbortSignal): Promise<void>
  prompts(signal: AbortSignal): Promise<Prompt[]>
  prompt(name: string, args: Record<string, string>, signal: AbortSignal): Promise<GetPromptResult>
  alive(): boolean
  /** Resolves when no call is running. */
  callsDone(): Promise<void>
  /** Ends the server and all processes that it started. Idempotent. */
  end(): Promise<void>
}

/** Default start timeout in milliseconds. This is long enough for `npx` to download a large package. */
const defaultStartMs = 30_000

/**
 * Connects to the server, and starts the server if it is a local program. Throws `McpServerError` if the server does
 * not start or cannot be reached. Throws the error of `abortedError` if the signal aborts.
 */
export async function connectServer(options: ConnectOptions): Promise<McpConnection> {
  const { server, worktree, signal } = options
  const { id, settings } = server
  const timeout = settings.timeout ?? defaultStartMs
  const calls = createPendingCalls(id, settings.callTimeout)
  const { client, transport } = await connectFirst(transportsFor(options), options, timeout, (created) =>
    answerRequests(created, { worktree, answers: calls.answers }),
  )
  const { tools, resources, prompts } = client.getServerCapabilities() ?? {}
  let lost = false
  client.onclose = () => {
    lost = true
  }

  /** Runs a request. `task` completes the error message "could not …", for example "list its resources". */
  async function request<T>(task: string, stopped: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (stopped.aborted) throw abortedError(stopped)
      lost ||= transport.isLost(error)
      const why = readable(transport.explain(error))
      throw new McpCallError(
        lost ? lostMessage(id, task, why) : `The MCP server ${id} could not ${task}: ${why}`,
        error,
      )
    }
  }

  return {
    has: { tools: tools !== undefined, resources: resources !== undefined, prompts: prompts !== undefined },
    async tools() {
      try {
        // Some servers offer tools without declaring them.
        if (!tools)
          return await listTools(client, { timeout: undeclaredMs, signal }, () => {}).catch(() => [])
        return await listTools(client, { timeout, signal }, (problem) =>
          options.onProblem(new McpCallError(`The MCP server ${id} works, but ${problem}`)),
        )
      } catch (error) {
        lost ||= transport.isLost(error)
        if (signal.aborted) throw abortedError(signal)
        throw new McpServerError(id, `it did not list its tools: ${transport.explain(error)}`, error)
      }
    },
    call: (call) =>
      calls.run(call, (idle) => request(`run ${call.name}`, idle.signal, () => callTool(client, call, idle))),
    resources: (stopped) =>
      request("list its resources", stopped, async () => {
        if (!resources) return { resources: [], templates: [] }
        const limits = { timeout, signal: stopped }
        const listed = await client.listResources(undefined, limits)
        const { resourceTemplates } = await client.listResourceTemplates(undefined, limits)
        return { resources: listed.resources, templates: resourceTemplates }
      }),
    readResource: (uri, stopped) =>
      request(`read ${uri}`, stopped, () =>
        client.readResource({ uri }, { timeout: idleTimeoutMs, signal: stopped }),
      ),
    watchResource: (uri, stopped) =>
      request(`watch ${uri}`, stopped, async () => {
        if (!resources?.subscribe) throw new McpCallError("it does not report changes to its resources.")
        await client.subscribeResource({ uri }, { timeout, signal: stopped })
      }),
    unwatchResource: (uri, stopped) =>
      request(`stop watching ${uri}`, stopped, async () => {
        await client.unsubscribeResource({ uri }, { timeout, signal: stopped })
      }),
    prompts: (stopped) =>
      request("list its prompts", stopped, async () =>
        prompts ? (await client.listPrompts(undefined, { timeout, signal: stopped })).prompts : [],
      ),
    prompt: (name, args, stopped) =>
      request(`fill in the prompt ${name}`, stopped, () =>
        client.getPrompt({ name, arguments: args }, { timeout: idleTimeoutMs, signal: stopped }),
      ),
    alive: () => !lost,
    callsDone: calls.done,
    async end() {
      await client.close()
      // Closes the transport directly, because the SDK's client forgets its transport when the connection is lost.
      await transport.close()
    },
  }
}

/**
 * Tries the transports in order. Tries the next transport only if the server does not support the previous one. If no
 * transport connects, throws the error of the first transport.
 */
async function connectFirst(
  transports: readonly ServerTransport[],
  { server, onToolsChanged, onResourceChanged, signal }: ConnectOptions,
  timeout: number,
  prepare: (client: Client) => void,
): Promise<{ client: Client; transport: ServerTransport }> {
  let problem: McpServerError | undefined
  for (const transport of transports) {
    // The protocol requires a version for the client.
    const client = new Client({ name: "tackle", version: "0" }, { capabilities: requestCapabilities })
    // Ignores other errors: failed requests reject with their own errors, and output that is not a message is skipped.
    client.onerror = () => {}
    client.setNotificationHandler("notifications/tools/list_changed", () => onToolsChanged())
    client.setNotificationHandler("notifications/resources/updated", ({ params }) =>
      onResourceChanged(params.uri),
    )
    prepare(client)
    readTolerantly(transport)
    try {
      await client.connect(transport, { timeout, signal })
      return { client, transport }
    } catch (error) {
      problem ??= new McpServerError(server.id, transport.explain(error), error)
      await transport.close()
      if (signal.aborted) throw abortedError(signal)
      if (!transport.isUnsupported(error)) throw problem
    }
  }
  throw problem
}

/** Lists all tools. If a tool does not follow the protocol, reports this tool and returns the other tools. */
async function listTools(
  client: Client,
  limits: { timeout: number; signal: AbortSignal },
  report: (problem: string) => void,
): Promise<Tool[]> {
  try {
    if (client.getServerCapabilities()?.tools) return (await client.listTools(undefined, limits)).tools
  } catch (error) {
    if (!(error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)) throw error
  }
  const tools: Tool[] = []
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page += 1) {
    const listed = await client.request({ method: "tools/list", params: { cursor } }, ToolPage, limits)
    for (const entry of listed.tools) {
      const checked = await specTypeSchemas.Tool["~standard"].validate(entry)
      if (checked.issues) report(describeOddTool(entry, checked.issues))
      else tools.push(checked.value)
    }
    cursor = listed.nextCursor
    if (cursor === undefined) break
  }
  return tools
}

/** Time in milliseconds to wait for the tools of a server that does not declare tools. */
const undeclaredMs = 2_000

/** Maximum number of pages of tools, as in the SDK. */
const maxPages = 64

/** A page of tools that are not checked yet. */
const ToolPage = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() })

function describeOddTool(tool: unknown, issues: readonly Parameters<typeof describeIssue>[0][]): string {
  const name = isRecord(tool) && typeof tool.name === "string" ? `its tool ${tool.name}` : "one of its tools"
  return `${name} is unavailable, because its definition does not follow the protocol (${issues.slice(0, 3).map(describeIssue).join("; ")}).`
}

function describeIssue({
  path = [],
  message,
}: {
  path?: readonly unknown[] | undefined
  message: string
}): string {
  return path.length > 0 ? `${path.join(".")}: ${message}` : message
}

/** Calls the tool. Each progress report restarts the idle timeout. */
function callTool(client: Client, call: McpCall, { restart, signal }: IdleTimeout): Promise<CallToolResult> {
  if (call.asTask) return callAsTask(client, call, { restart, signal, timeout: longestTimerMs })
  const { name, args, onProgress } = call
  function onprogress(progress: Progress): void {
    restart()
    onProgress(progress)
  }
  return client.callTool({ name, arguments: args }, { signal, onprogress, timeout: longestTimerMs })
}

/** Returns the transports to try, in order. Throws `McpServerError` if the program does not exist. */
function transportsFor({ server: { id, settings }, ...options }: ConnectOptions): ServerTransport[] {
  if (settings.type === "remote") {
    const authorizer = authorizerFor(id, settings, options)
    return [createHttpTransport(settings, authorizer), createSseTransport(settings, authorizer)]
  }
  const { worktree, trusted, environment, record } = options
  const given = { ...environment, ...settings.environment }
  const locations: ProgramLocations = { worktree, trusted, searchPath: given.PATH ?? "" }
  const [name = "", ...args] = settings.command
  const program = findProgram(name, locations)
  if (program === undefined) {
    const where = isAbsolute(name) ? "" : name.includes("/") ? ` in ${worktree}` : " on PATH"
    const hint = trusted
      ? ""
      : " Programs in an untrusted project do not run. To trust the project, run `tackle trust`."
    throw new McpServerError(id, `the program ${name} was not found${where}, or is not executable.${hint}`)
  }
  const env = { ...given, PATH: programDirectories(locations).join(delimiter) }
  return [createProcessTransport({ argv: [program, ...args], cwd: worktree, env, record })]
}

/**
 * Returns the authorizer for a remote server, or undefined if the configuration disables OAuth or sets an
 * `Authorization` header, which replaces OAuth.
 */
function authorizerFor(
  id: string,
  { url, headers = {}, oauth: settings = {} }: RemoteServer,
  { tokens, signal }: Pick<ConnectOptions, "tokens" | "signal">,
) {
  const hasKey = Object.keys(headers).some((name) => name.toLowerCase() === "authorization")
  return hasKey || settings === false ? undefined : createAuthorizer({ id, url, settings, tokens, signal })
}

/** Shortens the SDK's message for an invalid response, which contains a JSON list of issues. */
function readable(why: string): string {
  const [, method, list] = /^Invalid result for (\S+): (\[[\s\S]*\])$/.exec(why) ?? []
  const parsed = list === undefined ? undefined : parseJson(list)
  if (!parsed?.ok || !Array.isArray(parsed.value)) return why
  const issues = parsed.value
    .filter(isRecord)
    .slice(0, 3)
    .map(({ path, message }) =>
      describeIssue({ path: Array.isArray(path) ? path : [], message: String(message) }),
    )
  return `its answer to ${method} does not follow the protocol (${issues.join("; ")}). This is an error in the server.`
}

function lostMessage(id: string, task: string, why: string): string {
  // Clients may show the message on one line, so each sentence needs a final punctuation mark.
  const end = /[.!?…]$/.test(why) ? "" : "."
  return `Lost the connection to the MCP server ${id} while trying to ${task}: ${why}${end}\nIt is unknown whether the call took effect. The next call reconnects.`
}

/** Time in milliseconds between two requests for the state of a task, if the server proposes none. */
const defaultPollMs = 1_000

const Task = z.object({
  taskId: z.string(),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]),
  statusMessage: z.string().optional(),
  pollInterval: z.number().optional(),
})

/**
 * Runs a tool that its server offers only as a task. Reports each new status message as progress, and calls `restart`
 * after each answer from the server. `timeout` is the limit of one request in milliseconds. If the signal aborts,
 * cancels the task and rejects. Throws the errors of the requests.
 */
async function callAsTask(
  client: Client,
  { name, args, onProgress }: McpCall,
  { restart, signal, timeout }: { restart(): void; signal: AbortSignal; timeout: number },
): Promise<CallToolResult> {
  const options = { signal, timeout }
  const params = { name, arguments: args, task: {} }
  const created = await client.request({ method: "tools/call", params }, z.object({ task: Task }), options)
  const { taskId } = created.task
  let state = created.task
  let reports = 0
  try {
    while (state.status === "working") {
      await sleep(state.pollInterval ?? defaultPollMs, undefined, { signal })
      const { statusMessage } = state
      state = await client.request({ method: "tasks/get", params: { taskId } }, Task, options)
      restart()
      if (state.statusMessage !== undefined && state.statusMessage !== statusMessage) {
        reports += 1
        onProgress({ progress: reports, message: state.statusMessage })
      }
    }
    // This request also waits for a task that needs input, and carries the server's questions.
    return await client.request(
      { method: "tasks/result", params: { taskId } },
      specTypeSchemas.CallToolResult,
      options,
    )
  } catch (error) {
    if (signal.aborted)
      await client
        .request({ method: "tasks/cancel", params: { taskId } }, z.looseObject({}), { timeout: 5_000 })
        .catch(() => {})
    throw error
  }
}
