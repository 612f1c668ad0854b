import { delimiter } from "node:path"
import type {
  CallToolResult,
  Client,
  GetPromptResult,
  Progress,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplateType,
  Tool,
} from "@modelcontextprotocol/client"
import { abortedError } from "../../util/abort.ts"
import { findProgram, type ProgramLocations, programDirectories } from "../../util/find-program.ts"
import { isRecord, parseJson } from "../../util/json.ts"
import type { RecordTree } from "../../util/process.ts"
import { createCallsUnderWay, type McpCall, silenceMs } from "./calls-under-way.ts"
import type { McpServer, RemoteServer } from "./config.ts"
import { McpCallError, McpServerError } from "./errors.ts"
import { greetFirst } from "./greet.ts"
import { createHttpTransport, createSseTransport } from "./http-transport.ts"
import { createAuthorizer } from "./oauth/authorizer.ts"
import type { TokenBook } from "./oauth/token-book.ts"
import type { Patience } from "./patience.ts"
import { createProcessTransport } from "./process-transport.ts"
import { answerRequests } from "./requests.ts"
import type { ServerTransport } from "./transport.ts"

/** Where a server works, and who hears of it. */
export interface ConnectOptions {
  server: McpServer
  /** Where programs start. Absolute, links followed. */
  worktree: string
  /** False: no program that lies in the work tree is run. */
  trusted: boolean
  /** What programs get, before their own variables. */
  environment: Readonly<Record<string, string | undefined>>
  /** See `ProgramOptions`. */
  record: RecordTree
  /** Where tokens of servers are kept. */
  book: TokenBook
  /** The server says that its tools are others now. */
  onToolsChanged(): void
  /** The server says that a resource changed that it was asked to watch. */
  onResourceChanged(uri: string): void
  /** Fires to give up the start. */
  signal: AbortSignal
}

/** What can be read: what there is, and the patterns of what can be named. */
export interface ResourceList {
  resources: Resource[]
  templates: ResourceTemplateType[]
}

/**
 * A server that is up. What it is asked rejects with `McpCallError` where there is no answer, and with the signal's
 * reason, of which the server is told.
 */
export interface McpConnection {
  /** Kinds of things that the server says it has. */
  readonly has: { tools: boolean; resources: boolean; prompts: boolean }
  /** Every tool that it has now. Throws `McpServerError`. */
  tools(): Promise<Tool[]>
  /** An error that the tool itself reports is a result. */
  call(call: McpCall): Promise<CallToolResult>
  resources(signal: AbortSignal): Promise<ResourceList>
  readResource(uri: string, signal: AbortSignal): Promise<ReadResourceResult>
  /** Asks it to tell when the resource changes. */
  watchResource(uri: string, signal: AbortSignal): Promise<void>
  unwatchResource(uri: string, signal: AbortSignal): Promise<void>
  prompts(signal: AbortSignal): Promise<Prompt[]>
  prompt(name: string, args: Record<string, string>, signal: AbortSignal): Promise<GetPromptResult>
  /** False once it ended. */
  alive(): boolean
  /** Resolves as soon as no call is under way. */
  callsOver(): Promise<void>
  /** Asks it to end, then ends it with all that it started. May be called again. */
  end(): Promise<void>
}

/** What the largest `npx` takes to load its package. In milliseconds. */
const defaultStartMs = 30_000

/** Longer waits than this fire at once in Node. In milliseconds. */
const longestTimer = 2 ** 31 - 1

/** Starts or reaches the server and greets it. Throws `McpServerError`, and the signal's reason. */
export async function connectServer(options: ConnectOptions): Promise<McpConnection> {
  const { server, onToolsChanged, onResourceChanged, signal } = options
  const { id, settings } = server
  const timeout = settings.timeout ?? defaultStartMs
  const calls = createCallsUnderWay(id)
  const { client, transport } = await greetFirst(waysTo(options), {
    server,
    timeout,
    onToolsChanged,
    onResourceChanged,
    prepare: (made) => answerRequests(made, { worktree: options.worktree, answering: calls.answering }),
    signal,
  })
  const { tools, resources, prompts } = client.getServerCapabilities() ?? {}
  let lost = false
  client.onclose = () => {
    lost = true
  }

  /** `task` is what the server could not do, in words. */
  async function asking<T>(task: string, stopped: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (stopped.aborted) throw abortedError(stopped)
      lost ||= transport.isLost(error)
      throw new McpCallError(failureOf({ id, task, lost, why: plainWords(transport.explain(error)) }), error)
    }
  }

  return {
    has: { tools: tools !== undefined, resources: resources !== undefined, prompts: prompts !== undefined },
    async tools() {
      if (!tools) return []
      try {
        return (await client.listTools(undefined, { timeout, signal })).tools
      } catch (error) {
        lost ||= transport.isLost(error)
        if (signal.aborted) throw abortedError(signal)
        throw new McpServerError(id, `it did not name its tools: ${transport.explain(error)}`, error)
      }
    },
    call: (asked) =>
      calls.run(asked, (patience) =>
        asking(`run ${asked.name}`, patience.signal, () => callTool(client, asked, patience)),
      ),
    resources: (stopped) =>
      asking("list its resources", stopped, async () => {
        if (!resources) return { resources: [], templates: [] }
        const limits = { timeout, signal: stopped }
        const listed = await client.listResources(undefined, limits)
        const { resourceTemplates } = await client.listResourceTemplates(undefined, limits)
        return { resources: listed.resources, templates: resourceTemplates }
      }),
    readResource: (uri, stopped) =>
      asking(`read ${uri}`, stopped, () =>
        client.readResource({ uri }, { timeout: silenceMs, signal: stopped }),
      ),
    watchResource: (uri, stopped) =>
      asking(`watch ${uri}`, stopped, async () => {
        if (!resources?.subscribe) throw new Error("it does not tell of changes of its resources.")
        await client.subscribeResource({ uri }, { timeout, signal: stopped })
      }),
    unwatchResource: (uri, stopped) =>
      asking(`end watching ${uri}`, stopped, async () => {
        await client.unsubscribeResource({ uri }, { timeout, signal: stopped })
      }),
    prompts: (stopped) =>
      asking("list its prompts", stopped, async () =>
        prompts ? (await client.listPrompts(undefined, { timeout, signal: stopped })).prompts : [],
      ),
    prompt: (name, args, stopped) =>
      asking(`give the prompt ${name}`, stopped, () =>
        client.getPrompt({ name, arguments: args }, { timeout: silenceMs, signal: stopped }),
      ),
    alive: () => !lost,
    callsOver: calls.over,
    end: () => client.close(),
  }
}

/** How long the server may take is for the patience to say. */
function callTool(
  client: Client,
  { name, args, onProgress }: McpCall,
  { heard, signal }: Patience,
): Promise<CallToolResult> {
  function onprogress(progress: Progress): void {
    heard()
    onProgress(progress)
  }
  return client.callTool({ name, arguments: args }, { signal, onprogress, timeout: longestTimer })
}

/** The ways to the server, in the order in which they are tried. Throws `McpServerError` for a program that is not there. */
function waysTo({ server: { id, settings }, ...options }: ConnectOptions): ServerTransport[] {
  if (settings.type === "remote") {
    const authorizer = authorizerOf(id, settings, options)
    return [createHttpTransport(settings, authorizer), createSseTransport(settings, authorizer)]
  }
  const { worktree, trusted, environment, record } = options
  const given = { ...environment, ...settings.environment }
  const places: ProgramLocations = { worktree, trusted, searchPath: given.PATH ?? "" }
  const [name = "", ...args] = settings.command
  const program = findProgram(name, places)
  if (program === undefined) {
    const where = name.includes("/") ? `in ${worktree}` : "on PATH"
    const hint = trusted ? "" : " What lies in a project that is not trusted is not run (`tackle trust`)."
    throw new McpServerError(id, `there is no program ${name} ${where} that may be run.${hint}`)
  }
  const env = { ...given, PATH: programDirectories(places).join(delimiter) }
  return [createProcessTransport({ argv: [program, ...args], cwd: worktree, env, record })]
}

/** None where a key is in the configuration: it stands for the person. */
function authorizerOf(
  id: string,
  { url, headers = {}, oauth: settings = {} }: RemoteServer,
  { book, signal }: Pick<ConnectOptions, "book" | "signal">,
) {
  const hasKey = Object.keys(headers).some((name) => name.toLowerCase() === "authorization")
  return hasKey || settings === false ? undefined : createAuthorizer({ id, url, settings, book, signal })
}

/** What the SDK says of an answer that its schema refuses is a list of faults as JSON. */
function plainWords(why: string): string {
  const [, method, list] = /^Invalid result for (\S+): (\[[\s\S]*\])$/.exec(why) ?? []
  const parsed = list === undefined ? undefined : parseJson(list)
  if (!parsed?.ok || !Array.isArray(parsed.value)) return why
  const faults = parsed.value
    .filter(isRecord)
    .slice(0, 3)
    .map(({ path, message }) => `${Array.isArray(path) ? path.join(".") : ""}: ${String(message)}`)
  return `its answer to ${method} is none that the protocol has (${faults.join("; ")}). The fault is the server's.`
}

function failureOf({ id, task, lost, why }: { id: string; task: string; lost: boolean; why: string }) {
  if (!lost) return `The MCP server ${id} could not ${task}: ${why}`
  // Where it is folded into one line the sentences still have to part.
  const end = /[.!?…]$/.test(why) ? "" : "."
  return `The MCP server ${id} was lost when it was to ${task}: ${why}${end}\nIt is not known what was done. The next call connects again.`
}
