import type { Action } from "../schema/permission.ts"
import type { SampleResult, ToolContext } from "../tool/context.ts"
import { createSpillOpener } from "../tool/spill.ts"
import { isRecord, plainRecord } from "../util/json.ts"
import { ask, referenceTo } from "./ask-leave.ts"
import type { CallHost } from "./call.ts"
import type { PreparedCall } from "./prepare.ts"
import type { TimeLimit } from "./time-limit.ts"
import type { Waits } from "./waits.ts"

/** What a call does with what its tool tells the context. */
export interface ContextHooks {
  /** Of what it asks the person. */
  signal: AbortSignal
  /** Are told of what is asked of a person. */
  waits: Waits
  onProgress(update: { title?: string; metadata?: Record<string, unknown> }): void
  /** Before the tool hears that it may go on. */
  onLeave(): Promise<void>
}

/** What the tool of a call is given: the capabilities that the host has, as far as a tool of its source may use them. */
export function createContext(
  prepared: PreparedCall,
  host: CallHost,
  limit: TimeLimit,
  { signal, waits, onProgress, onLeave }: ContextHooks,
): ToolContext {
  const { call, tool } = prepared
  const { spawn, question, sample, form } = host
  const askedFor = tool.source.kind === "builtin" ? undefined : tool.id
  const awaited = <T>(answer: () => Promise<T>) =>
    limit.outside(() =>
      waits.during((begin) => {
        begin()
        return answer()
      }),
    )
  const ctx: ToolContext = {
    sessionID: host.sessionID,
    messageID: host.messageID,
    callID: call.callID,
    agent: host.agent,
    abort: limit.signal,
    directory: host.directory,
    worktree: host.worktree,
    files: host.files,
    spill: createSpillOpener({
      directory: host.spillDirectory,
      name: spillName(call.callID, host.messageID),
      ...(host.spillBytes === undefined ? {} : { maxBytes: host.spillBytes }),
      ...(host.mask === undefined ? {} : { mask: host.mask }),
    }),
    async metadata({ title, metadata, ...rest }) {
      const known = isRecord(metadata) ? metadata : {}
      onProgress({
        ...(typeof title === "string" ? { title } : {}),
        metadata: plainRecord({ ...known, ...rest }),
      })
    },
    async mayRead(path) {
      const { checks } = await host.permission.check({ permission: "read", patterns: [path] }, host.scope)
      // Leave for the directory that is searched was given already.
      const actions = checks.filter(({ permission }) => permission === "read").map(({ action }) => action)
      return strictest(actions)
    },
    async ask(request) {
      // Leave for a third party's own id was given before it started: rules may still deny, nobody is asked twice.
      const again = request.permission === askedFor
      const check = again ? await host.permission.check(request, host.scope) : undefined
      if (check && check.action !== "deny") return
      await limit.outside(() =>
        waits.during((begin) => {
          const announced = async () => {
            await host.announced?.()
            begin()
          }
          return ask(request, prepared, { ...host, announced }, signal)
        }),
      )
      await onLeave()
    },
  }
  if (host.model) ctx.model = host.model
  if (host.changes) ctx.changes = host.changes
  if (host.todo) ctx.todo = host.todo
  if (host.jobs) ctx.jobs = host.jobs
  if (host.sandbox) ctx.sandbox = host.sandbox
  // Our own tools ask before they use it.
  if (host.lsp && tool.source.kind === "builtin") ctx.lsp = host.lsp
  if (host.formatter && tool.source.kind === "builtin") ctx.formatter = host.formatter
  // The task tool asks before it uses this; nobody else's word would do.
  if (spawn && tool.source.kind === "builtin")
    ctx.spawn = (request) => spawn(request, referenceTo(call, host))
  if (question)
    ctx.question = (questions, document, stop) => {
      const asked = document ? { questions, document } : { questions }
      const ended = stop ? AbortSignal.any([stop, signal]) : signal
      return awaited(() => question(asked, referenceTo(call, host), ended))
    }
  // Our own code says in it which server asks.
  if (form && tool.source.kind === "mcp")
    ctx.form = (shown, stop) => awaited(() => form(shown, AbortSignal.any([stop, signal])))
  // Our own code asks for leave before it hands on what a server asks.
  if (sample && tool.source.kind === "mcp") {
    const sampled: NonNullable<SampleResult["spent"]>[] = []
    ctx.sample = async (request) => {
      const answer = await limit.outside(() => sample(request))
      if (answer.spent) sampled.push(answer.spent)
      if (answer.spent) onProgress({ metadata: { sampled: [...sampled] } })
      return answer
    }
  }
  if (host.catalogue && tool.source.kind === "builtin") ctx.catalogue = host.catalogue
  if (host.plan) ctx.plan = host.plan
  // What it gives counts as told: only a tool that passes it on may take it.
  if (host.instructions && tool.source.kind === "builtin") ctx.instructions = host.instructions
  if (host.extra) ctx.extra = host.extra
  return ctx
}

function strictest(actions: readonly Action[]): Action {
  return (["deny", "ask"] as const).find((action) => actions.includes(action)) ?? "allow"
}

/**
 * A call's id as part of a file's name. Some providers put whole signatures into their ids, others count them anew in
 * each answer: the end of the message's id, which is random, tells those apart.
 */
function spillName(callID: string, messageID: string): string {
  return `${callID.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64)}_${messageID.slice(-6)}`
}
