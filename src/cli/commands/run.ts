import { readFile } from "node:fs/promises"
import { text as readAll } from "node:stream/consumers"
import { useNetworkSettings } from "../../model/proxy.ts"
import type { Tackle } from "../../runtime/tackle.ts"
import type { SessionHandle } from "../../session/handle.ts"
import { TimeoutError } from "../../util/abort.ts"
import { errorMessage, UsageError } from "../../util/errors.ts"
import { isRecord, parseJson } from "../../util/json.ts"
import { answerRequests } from "../answer.ts"
import { attachFiles } from "../attach.ts"
import { chooseModel } from "../choose-model.ts"
import { canAskHere } from "../client.ts"
import { exitCode } from "../exit.ts"
import { printLine } from "../print.ts"
import { openPlace, openTackle, type PlaceFlags, type RuleFlags } from "../setup.ts"
import { stdout } from "../stdout.ts"
import { createJsonView } from "../view/json.ts"
import { createTextView } from "../view/text.ts"

export interface RunFlags extends PlaceFlags, RuleFlags {
  model?: string
  agent?: string
  session?: string
  continue?: boolean
  fork?: boolean
  format: "text" | "json"
  auto?: boolean
  file?: string[]
  maxSteps?: number
  maxTokens?: number
  maxCost?: number
  timeout?: number
  outputSchema?: string
}

/** `tackle run`: one prompt to its end. Sets the exit code of the process. */
export async function run(message: readonly string[], flags: RunFlags): Promise<void> {
  const prompt = await readPrompt(message)
  const outputSchema = flags.outputSchema === undefined ? undefined : await readSchema(flags.outputSchema)
  const place = await openPlace(flags)
  const restoreNetwork = await useNetworkSettings(place.environment)
  const model = flags.model ?? place.config.config.model ?? (await chooseModel(place))
  const tackle = await openTackle(place, flags, { model })
  try {
    const view =
      flags.format === "json"
        ? createJsonView(stdout)
        : createTextView({
            // Where the answer is JSON, other words are for people.
            output: outputSchema ? process.stderr : stdout,
            notes: process.stderr,
            worktree: place.worktree,
          })
    const interrupt = interruptSignal(flags.timeout)
    try {
      const files = await attachFiles(tackle, flags.file ?? [], interrupt.signal)
      tackle.subscribe(view.show)
      answerRequests(tackle, {
        auto: flags.auto ?? false,
        questions: canAskHere(place.environment) && !flags.auto,
        pause: view.pause,
        signal: interrupt.signal,
        interrupt: interrupt.fire,
      })
      const session = await openSession(tackle, flags)
      const started = session.prompt(prompt, {
        files,
        signal: interrupt.signal,
        ...(flags.model === undefined ? {} : { model: flags.model }),
        ...(flags.maxSteps === undefined ? {} : { maxSteps: flags.maxSteps }),
        ...(flags.maxTokens === undefined ? {} : { maxTokens: flags.maxTokens }),
        ...(outputSchema === undefined ? {} : { outputSchema }),
        ...(flags.maxCost === undefined ? {} : { maxCost: flags.maxCost }),
      })
      const { status, text, exitCode } = await started.completed
      if (outputSchema && flags.format === "text" && status === "completed") printLine(text)
      process.exitCode = exitCode
    } finally {
      interrupt.release()
      view.end()
    }
  } finally {
    await tackle.close()
    restoreNetwork()
  }
}

async function readPrompt(message: readonly string[]): Promise<string> {
  const given = message.join(" ").trim()
  const fromStdin = given === "-" || given === ""
  if (given === "" && process.stdin.isTTY) {
    throw new UsageError('There is no message. Write what to do: tackle run "list the files".')
  }
  const prompt = fromStdin ? (await readAll(process.stdin)).trim() : given
  if (prompt === "") throw new UsageError("The message is empty: stdin held no text.")
  return prompt
}

async function readSchema(file: string): Promise<Record<string, unknown>> {
  let text: string
  try {
    text = await readFile(file, "utf8")
  } catch (error) {
    throw new UsageError(`Cannot read ${file} (--output-schema): ${errorMessage(error)}`, error)
  }
  const parsed = parseJson(text)
  if (parsed.ok && isRecord(parsed.value)) return parsed.value
  const problem = parsed.ok ? "it is no object" : parsed.error
  throw new UsageError(`${file} (--output-schema) is no JSON Schema: ${problem}.`)
}

async function openSession(tackle: Tackle, flags: RunFlags): Promise<SessionHandle> {
  if (!flags.fork) return findSession(tackle, flags)
  if (flags.session === undefined && !flags.continue) {
    throw new UsageError("--fork needs the session to copy: -c for the last, or -s <id>.")
  }
  const from = await findSession(tackle, flags)
  return (await tackle.sessions.fork(from.id)) ?? from
}

async function findSession(tackle: Tackle, flags: RunFlags): Promise<SessionHandle> {
  if (flags.agent !== undefined && (flags.session !== undefined || flags.continue)) {
    throw new UsageError("A session keeps its agent: leave out --agent, or begin a new session.")
  }
  if (flags.session !== undefined) {
    const session = await tackle.sessions.get(flags.session)
    if (!session)
      throw new UsageError(`There is no session ${flags.session}. \`tackle session list --all\` shows them.`)
    // Its tools work in its directory, so the config, rules and trust have to be those of that place.
    const { directory, worktree } = session.info()
    if (worktree !== tackle.worktree) {
      throw new UsageError(
        `Session ${flags.session} belongs to ${directory}. Go on with it there: --dir ${directory}`,
      )
    }
    return session
  }
  if (flags.continue) {
    const session = await tackle.sessions.latest()
    if (!session) throw new UsageError("There is no session of this project to go on with.")
    return session
  }
  return tackle.sessions.create({
    ...(flags.agent === undefined ? {} : { agent: flags.agent }),
    ...(flags.model === undefined ? {} : { model: flags.model }),
  })
}

/** Ctrl-C, SIGTERM and the time limit end the run in order; a second Ctrl-C ends the process at once. */
function interruptSignal(timeoutSeconds: number | undefined) {
  const controller = new AbortController()
  const fire = () => {
    if (controller.signal.aborted) process.exit(exitCode.interrupted)
    controller.abort()
  }
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const
  for (const name of signals) process.on(name, fire)
  const timer = timeoutSeconds === undefined ? undefined : setTimeout(timeOut, timeoutSeconds * 1000)

  function timeOut(): void {
    const text = `The run was stopped: it reached its limit of ${timeoutSeconds} s (--timeout).`
    controller.abort(new TimeoutError(text, Number(timeoutSeconds) * 1000))
  }

  return {
    signal: controller.signal,
    fire,
    release() {
      clearTimeout(timer)
      for (const name of signals) process.off(name, fire)
    },
  }
}
