import { readFileSync, statSync } from "node:fs"
import { basename } from "node:path"
import { text as readAll } from "node:stream/consumers"
import { useNetworkSettings } from "../../model/proxy.ts"
import type { Tackle } from "../../runtime.ts"
import type { PromptFile, SessionHandle } from "../../session/session.ts"
import { UsageError } from "../../util/errors.ts"
import { resolvePath } from "../../util/paths.ts"
import { answerRequests } from "../answer.ts"
import { chooseModel } from "../choose-model.ts"
import { exitCode } from "../exit.ts"
import { openPlace, openTackle, type PlaceFlags, type RuleFlags } from "../setup.ts"
import { createJsonView } from "../view/json.ts"
import { createTextView } from "../view/text.ts"

export interface RunFlags extends PlaceFlags, RuleFlags {
  model?: string
  agent?: string
  session?: string
  continue?: boolean
  format: "text" | "json"
  auto?: boolean
  file: string[]
  maxSteps?: number
  timeout?: number
}

/** `tackle run`: one prompt to its end. Sets the exit code of the process. */
export async function run(message: readonly string[], flags: RunFlags): Promise<void> {
  const prompt = await readPrompt(message)
  const place = await openPlace(flags)
  const files = flags.file.map((path) => readAttachment(path, place.directory))
  const restoreNetwork = await useNetworkSettings(place.environment)
  const model = flags.model ?? place.config.config.model ?? (await chooseModel(place))
  const tackle = await openTackle(place, flags, { model })
  try {
    const view =
      flags.format === "json"
        ? createJsonView(process.stdout)
        : createTextView({ output: process.stdout, notes: process.stderr, worktree: place.worktree })
    const stopView = tackle.subscribe(view.show)
    const stopAnswers = answerRequests(tackle, { auto: flags.auto ?? false, pause: view.pause })
    const interrupt = interruptSignal(flags.timeout)
    try {
      const session = await openSession(tackle, flags)
      const started = session.prompt(prompt, {
        files,
        signal: interrupt.signal,
        ...(flags.model === undefined ? {} : { model: flags.model }),
        ...(flags.maxSteps === undefined ? {} : { maxSteps: flags.maxSteps }),
      })
      const end = await started.completed
      process.exitCode = interrupt.timedOut() ? exitCode.limit : end.exitCode
    } finally {
      interrupt.release()
      stopAnswers()
      stopView()
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
  if (fromStdin && process.stdin.isTTY) {
    throw new UsageError('There is no message. Write what to do: tackle run "list the files".')
  }
  const prompt = fromStdin ? (await readAll(process.stdin)).trim() : given
  if (prompt === "") throw new UsageError("The message is empty: stdin held no text.")
  return prompt
}

async function openSession(tackle: Tackle, flags: RunFlags): Promise<SessionHandle> {
  if (flags.session !== undefined) {
    const session = await tackle.sessions.get(flags.session)
    if (!session)
      throw new UsageError(`There is no session ${flags.session}. \`tackle session list --all\` shows them.`)
    return session
  }
  if (flags.continue) {
    const session = await tackle.sessions.latest()
    if (!session) throw new UsageError("There is no session of this project to go on with.")
    return session
  }
  return tackle.sessions.create(flags.agent === undefined ? {} : { agent: flags.agent })
}

/** Ten megabytes: more does not fit a request of any provider. */
const maxAttachmentBytes = 10 * 1024 * 1024

const imageTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  pdf: "application/pdf",
}

function readAttachment(path: string, directory: string): PromptFile {
  const file = resolvePath(path, directory)
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found?.isFile()) throw new UsageError(`There is no file ${file} (--file).`)
  if (found.size > maxAttachmentBytes)
    throw new UsageError(
      `${file} is too large to attach: ${found.size} bytes, at most ${maxAttachmentBytes}.`,
    )
  const mime = imageTypes[file.split(".").at(-1)?.toLowerCase() ?? ""] ?? "text/plain"
  return {
    mime,
    url: `data:${mime};base64,${readFileSync(file).toString("base64")}`,
    filename: basename(file),
  }
}

/** Ctrl-C, SIGTERM and the time limit end the run in order; a second Ctrl-C ends the process at once. */
function interruptSignal(timeoutSeconds: number | undefined) {
  const controller = new AbortController()
  let timedOut = false
  const onSignal = () => {
    if (controller.signal.aborted) process.exit(exitCode.interrupted)
    controller.abort()
  }
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const
  for (const name of signals) process.on(name, onSignal)
  const timer =
    timeoutSeconds === undefined
      ? undefined
      : setTimeout(() => {
          timedOut = true
          controller.abort()
        }, timeoutSeconds * 1000)
  return {
    signal: controller.signal,
    timedOut: () => timedOut,
    release() {
      clearTimeout(timer)
      for (const name of signals) process.off(name, onSignal)
    },
  }
}
