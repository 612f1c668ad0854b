import { type Command, Option } from "commander"
import { Delivery, type Input } from "../../schema/input.ts"
import type { SessionHandle } from "../../session/handle.ts"
import type { LeaseHolder } from "../../store/store.ts"
import { currentTime } from "../../util/time.ts"
import { canAskHere } from "../process/question.ts"
import { printHint, printLine, stdout } from "../process/stdout.ts"
import { answerRequests, requestsOf } from "../run/answer.ts"
import { attachFiles, reportMissingMentions } from "../run/attach.ts"
import { openQueue, otherProcess, runAndDeliver } from "../run/deliver.ts"
import { type Foreground, type ForegroundFlags, inForeground } from "../run/foreground.ts"
import { defaultModel, readPrompt } from "../run/task.ts"
import { openWorkspace } from "../workspace/workspace.ts"
import { collect, foregroundFlags, projectFlags } from "./flags.ts"
import { commandOf, storedSession } from "./run.ts"

/** Defines `tackle send`. */
export function defineSend(send: Command): void {
  projectFlags(send)
    .usage("[options] [id] [text...]")
    .argument(
      "[text...]",
      'the session\'s id (default: the latest session in this project), then the text, or /name and arguments for a command; "-" or nothing reads stdin',
    )
    .option("-s, --session <id>", "send to this session; all arguments are the text")
    .addOption(
      new Option("-c, --continue", "send to the latest session in this project (default)").conflicts(
        "session",
      ),
    )
    .addOption(
      new Option("--delivery <when>", "steer: before the next step; queue: after the run; now: stop the run")
        .choices(Delivery.options)
        .default("steer"),
    )
    .option("--id <id>", "id of the input; sending the same input with this id again has no effect")
    .option("-f, --file <path>", "attach a file (repeatable)", collect)
    .option("--no-run", "only queue the text, even if the session is idle")
  foregroundFlags(send).action(sendInput)
}

/** Flags for `tackle send`. If `run` is false, the input is only queued. */
export interface SendFlags extends ForegroundFlags {
  /** Id of the session. Default: the first argument, if it is an id, or the latest session in the project. */
  session?: string
  continue?: boolean
  delivery: Delivery
  /** Id for the input. Sending the same input with this id again has no effect. */
  id?: string
  /** Paths of files to attach. */
  file?: string[]
  run: boolean
}

/** Runs `tackle send`: queues the text, and runs the session if it is idle. */
export async function sendInput(words: readonly string[], flags: SendFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  const [first = ""] = words
  const isNamed = flags.session === undefined && !flags.continue && /^ses_\w+$/.test(first)
  const sessionID = isNamed ? first : flags.session
  const prompt = await readPrompt(isNamed ? words.slice(1) : words, 'tackle send "use tabs"')
  const overrides = { model: await defaultModel(workspace) }
  await inForeground({ flags, rules: flags, workspace, overrides }, async (foreground) => {
    const { tackle, signal } = foreground
    const session = await storedSession(tackle, sessionID)
    const files = await attachFiles(tackle, flags.file ?? [], signal)
    await reportMissingMentions(prompt, tackle, signal)
    const command = await commandOf({ prompt }, tackle, signal)
    const { id, delivery } = flags
    const { input } = await openQueue(tackle, session.id).admit(prompt, { id, delivery, files, command })
    const other = await otherProcess(tackle, session.id)
    const runs = flags.run && !other && input.state === "pending" && !input.held
    if (flags.format === "json") printReceipt(input, { other, runs })
    else if (!runs) printHint(describe(input, other))
    return runs ? runInputs(session, { ...foreground, flags }) : 0
  })
}

/** Delivers a session's inputs in the foreground. Returns the exit code. */
export async function runInputs(
  session: SessionHandle,
  { tackle, view, signal, interrupt, flags }: Foreground & { flags: ForegroundFlags },
): Promise<number> {
  const { auto = false } = flags
  const questions = canAskHere(process.env) && !auto
  tackle.subscribe(view.show)
  answerRequests(requestsOf(tackle), { auto, questions, pause: view.pause, signal, interrupt })
  view.continues(session.info())
  const code = await runAndDeliver(session, { tackle, signal }, () => session.inputs.resume())
  await view.end()
  return code
}

/** Prints the first line of `--format json`. If this process runs the session, the events follow. */
function printReceipt(
  { id, sessionID, seq, state, delivery, held }: Input,
  { other, runs }: { other: LeaseHolder | undefined; runs: boolean },
): void {
  const receipt = { type: "input.receipt", time: currentTime(), sessionID, id, seq, state, delivery, held }
  const deliveredBy = runs ? process.pid : other?.pid
  stdout.write(`${JSON.stringify({ ...receipt, process: state === "pending" ? deliveredBy : undefined })}\n`)
}

/**
 * Returns a message about an input that this process does not deliver: which process delivers it, or how to deliver it.
 */
function describe(input: Input, other: LeaseHolder | undefined): string {
  const { id, sessionID, state, held, delivery, command } = input
  const stored = `Queued ${id} in ${sessionID}.`
  if (state !== "pending")
    return `${id} was already ${state === "withdrawn" ? "withdrawn" : "delivered"} in ${sessionID}.`
  if (held) return `${stored} The input is held. To release it: tackle queue release -s ${sessionID} ${id}`
  if (!other) return `${stored} To deliver it: tackle queue resume -s ${sessionID}`
  if (delivery === "now")
    return `${stored} Process ${other.pid}, which is running the session, will stop its run and deliver the input.`
  const when = delivery === "queue" || command ? "after its current run" : "before its next step"
  return `${stored} Process ${other.pid} will deliver it ${when}.`
}

/** Prints that no inputs are left to deliver, or which process delivers them. */
export function printNotRun(sessionID: string, other: LeaseHolder | undefined): void {
  printLine(
    other
      ? `Process ${other.pid} will deliver the inputs of ${sessionID}.`
      : `${sessionID} has no inputs to deliver.`,
  )
}
