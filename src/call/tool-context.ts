import type { Action } from "../schema/permission.ts"
import type { AskRequest, SampleResult, ToolContext } from "../tool/context.ts"
import { createSpillOpener, spillName } from "../tool/spill.ts"
import { isRecord, plainRecord } from "../util/json.ts"
import { ask, referenceTo } from "./ask.ts"
import type { Step } from "./context.ts"
import type { PreparedCall } from "./prepare.ts"
import type { TimeLimit, UserWaits } from "./time-limit.ts"

/** Resources and callbacks for the context of a call. */
export interface ContextHooks {
  limit: TimeLimit
  waits: UserWaits
  /** Signal that withdraws the call's questions when aborted. */
  signal: AbortSignal
  onProgress(update: { title?: string; metadata?: Record<string, unknown> }): void
  /** Called after the user or a rule allows a request, before the tool continues. */
  onAllowed(): Promise<void>
  /** Resolves when the call has been stored and announced. Questions and permission requests refer to the call. */
  announce(): Promise<void>
  /**
   * Returns true if the user was asked for permission to use the tool before it started. Questions about repeated calls
   * do not count.
   */
  wasAsked(): boolean
}

/**
 * Creates the context of one call. The context contains the capabilities of the run that tools from this source may
 * use.
 */
export function createToolContext(prepared: PreparedCall, step: Step, hooks: ContextHooks): ToolContext {
  const { call, tool } = prepared
  const { active, messageID } = step
  const { run, agent, scope } = active
  const { engine, session } = run
  const { limit, waits, signal, onProgress } = hooks
  const isBuiltin = tool.source.kind === "builtin"
  const isMcp = tool.source.kind === "mcp"
  const unavailable = active.toolScope.unavailable ?? {}

  /**
   * Runs `work` with the clock stopped. The time after `work` calls `begin` counts as time spent waiting for the user.
   */
  const waiting = <T>(work: (begin: () => void) => Promise<T>) => limit.outside(() => waits.during(work))
  const answered = <T>(answer: () => Promise<T>) =>
    waiting((begin) => {
      begin()
      return answer()
    })

  const alias = isBuiltin ? undefined : engine.registry.aliasOf(tool.id)

  async function askUser(given: AskRequest): Promise<void> {
    const { permission } = given
    const isOwn = !isBuiltin && (permission === tool.id || (permission === alias?.name && !alias.tightenOnly))
    // Sets `alias` and `confined` here, so that a tool cannot choose them itself.
    const confined = isBuiltin && tool.id === "bash"
    const request = isOwn
      ? { ...given, permission: tool.id, alias, confined }
      : { ...given, alias: undefined, confined }
    // The permission with the name of a third-party tool was granted before the tool started. Rules can still refuse
    // the request or ask about its patterns, but the user is not asked twice.
    if (isOwn) {
      const { action, checks } = await engine.permission.check(request, scope)
      const named = checks.some(({ action, rule }) => action === "ask" && rule && rule.pattern !== "*")
      if (action !== "deny" && (hooks.wasAsked() || !named)) return
    }
    await waiting((begin) =>
      ask(request, prepared, step, {
        signal,
        async announce() {
          await hooks.announce()
          begin()
        },
      }),
    )
    await hooks.onAllowed()
  }

  const ctx: ToolContext = {
    sessionID: session.id,
    messageID,
    callID: call.callID,
    agent: agent.name,
    model: run.model?.info.ref,
    abort: limit.signal,
    directory: session.directory,
    worktree: session.worktree,
    extra: { ...run.extra, ...step.extra },
    files: run.files,
    changes: run.changes,
    todo: run.todo,
    jobs: engine.jobs,
    sandbox: active.sandbox,
    plan: run.planFile === undefined ? undefined : { file: run.planFile },
    spill: createSpillOpener({
      directory: `${engine.spillRoot}/${session.id}`,
      // Some providers use long signatures as call ids. Others number the calls of each answer from one.
      name: spillName(call.tool, `${call.callID.slice(0, 64)}_${messageID.slice(-6)}`),
      maxBytes: engine.spillBytes,
      mask: engine.mask,
    }),
    async metadata({ title, metadata, ...rest }) {
      const known = isRecord(metadata) ? metadata : {}
      onProgress({
        title: typeof title === "string" ? title : undefined,
        metadata: plainRecord({ ...known, ...rest }),
      })
    },
    async mayRead(path) {
      const { checks } = await engine.permission.check({ permission: "read", patterns: [path] }, scope)
      // Access to the searched directory is already allowed.
      const actions = checks.filter(({ permission }) => permission === "read").map(({ action }) => action)
      return strictest(actions)
    },
    ask: askUser,
  }
  if (unavailable.question === undefined)
    ctx.question = (questions, document, stop) => {
      const ended = stop ? AbortSignal.any([stop, signal]) : signal
      const request = { sessionID: session.id, questions, document, tool: referenceTo(call, step) }
      return answered(() => engine.questions.ask(request, ended))
    }
  if (isBuiltin) {
    // Third-party tools do not get these services. Built-in tools request permission before they use them.
    ctx.lsp = engine.lsp
    ctx.formatter = engine.formatter
    ctx.catalogue = active.catalogue
    // Third-party tools do not get `near`: the instructions that it returns count as read by the model, but only
    // built-in tools add them to their output.
    ctx.instructions = run.instructions
    const { spawn } = run
    if (spawn && unavailable.task === undefined)
      ctx.spawn = (request) => spawn(request, referenceTo(call, step))
  }
  if (isMcp) {
    const { form, sample } = run
    if (form) ctx.form = (shown, stop) => answered(() => form(shown, AbortSignal.any([stop, signal])))
    if (sample) {
      const sampled: NonNullable<SampleResult["spent"]>[] = []
      ctx.sample = async (request) => {
        const answer = await limit.outside(() => sample(request))
        if (answer.spent) {
          sampled.push(answer.spent)
          onProgress({ metadata: { sampled: [...sampled] } })
        }
        return answer
      }
    }
  }
  return ctx
}

function strictest(actions: readonly Action[]): Action {
  return (["deny", "ask"] as const).find((action) => actions.includes(action)) ?? "allow"
}
