import { type Command, Option } from "commander"
import { shownName } from "../../config/shown-name.ts"
import type { Tackle } from "../../engine/tackle.ts"
import type { RunLine } from "../../model/recording/format.ts"
import { type CommandCall, checkCommand } from "../../session/command.ts"
import type { SessionHandle } from "../../session/handle.ts"
import { UsageError } from "../../util/errors.ts"
import { shellWord } from "../../util/words.ts"
import { exitCode as exitCodes } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { canAskHere } from "../process/question.ts"
import { printLine } from "../process/stdout.ts"
import { answerRequests, requestsOf } from "../run/answer.ts"
import { attachFiles, reportMissingMentions } from "../run/attach.ts"
import { runAndDeliver } from "../run/deliver.ts"
import { type Foreground, type ForegroundFlags, inForeground } from "../run/foreground.ts"
import type { StartedRecording } from "../run/recording.ts"
import type { RemoteFlags } from "../run/remote.ts"
import { type RunTask, readPrompt, readTask, type TaskFlags } from "../run/task.ts"
import { openWorkspace } from "../workspace/workspace.ts"
import {
  amount,
  collect,
  databaseFlag,
  foregroundFlags,
  positive,
  projectFlags,
  tokenFileFlag,
} from "./flags.ts"

/** Defines `tackle run`. */
export function defineRun(run: Command): void {
  foregroundFlags(projectFlags(run))
    .argument("[message...]", 'the prompt, or /name and arguments for a command; "-" or nothing reads stdin')
    .option(
      "-m, --model <name>",
      "model to use, as provider/model; the session uses it for later prompts too",
    )
    .option("--agent <name>", "agent to use (default: default_agent in the config, or build)")
    .option("-s, --session <id>", "continue this session")
    .addOption(
      new Option("-c, --continue", "continue the latest session in this project").conflicts("session"),
    )
    .option("--fork", "with -s or -c: continue a copy and leave the original session unchanged")
    .option("-f, --file <path>", "attach a file (repeatable)", collect)
    .option("--max-steps <n>", "stop after this many model steps", positive)
    .option("--max-tokens <n>", "stop after this many tokens", positive)
    .option("--max-cost <dollars>", "stop at this cost in US dollars", amount)
    .option("--output-schema <file>", "print an answer that matches this JSON Schema")
    .addOption(
      new Option("--record <file>", "record requests and results for --replay").conflicts([
        "session",
        "continue",
      ]),
    )
    .addOption(
      new Option("--replay <file>", "replay a recording, with the recorded model and tool results").conflicts(
        [
          ...["record", "session", "continue", "agent", "model", "file", "outputSchema"],
          ...["maxSteps", "maxTokens", "maxCost", "allow", "deny"],
        ],
      ),
    )
    .addOption(
      new Option("--attach <url>", "run on this server, with its config and rules").conflicts([
        ...["record", "replay", "trust", "file", "outputSchema", "maxSteps", "maxTokens", "maxCost"],
        ...["allow", "deny", "sandboxed"],
      ]),
    )
    .addOption(tokenFileFlag())
    .addOption(databaseFlag().conflicts("attach"))
    .action(runPrompt)
}

/** Flags for `tackle run`. {@link defineRun} specifies which flags conflict. */
export interface RunFlags extends ForegroundFlags, TaskFlags, RemoteFlags {
  /**
   * Id of the session to continue. Alternatively, `continue` selects the latest session in the project. `fork`
   * continues a copy of the session.
   */
  session?: string
  continue?: boolean
  fork?: boolean
  /** Paths of files to attach. */
  file?: string[]
  /** Path of the recording to write. `replay` is the path of the recording to replay. */
  record?: string
  replay?: string
  /** URL of the server to run on. */
  attach?: string
  /** URL of a PostgreSQL database. */
  database?: string
}

/** Runs `tackle run`: runs one prompt to completion and sets the exit code. */
export async function runPrompt(message: readonly string[], flags: RunFlags): Promise<void> {
  if (flags.replay !== undefined && message.length > 0)
    throw new UsageError("The recording already contains the message. With --replay, omit the message.")
  if (flags.attach !== undefined) {
    const { runOnServer } = await import("../run/remote.ts")
    return runOnServer(flags.attach, await readPrompt(message, 'tackle run "list the files"'), flags)
  }
  const workspace = await openWorkspace(flags)
  const replay =
    flags.replay === undefined
      ? undefined
      : (await import("../run/recording.ts")).openReplay(flags.replay, workspace)
  const task = replay ? replay.task : await readTask(message, flags, workspace)
  const recording =
    flags.record === undefined
      ? undefined
      : (await import("../run/recording.ts")).startRecording(flags.record, workspace)
  const database = flags.database ?? workspace.environment.TACKLE_DATABASE
  const overrides = { model: task.model, database, ...recording?.options, ...replay?.options }
  try {
    await inForeground({ flags, rules: task, workspace, overrides }, async (foreground) => {
      const code = await runTask(task, { ...foreground, flags, recording })
      return replay && !replay.end() ? exitCodes.failed : code
    })
  } finally {
    recording?.end()
  }
}

interface StartedRun extends Foreground {
  flags: RunFlags
  recording: StartedRecording | undefined
}

/** Runs the task, then delivers the inputs that arrived in the meantime. Returns the exit code. */
async function runTask(
  task: RunTask,
  { tackle, flags, recording, view, signal, interrupt }: StartedRun,
): Promise<number> {
  const { outputSchema, limits } = task
  const files = task.files ?? (await attachFiles(tackle, flags.file ?? [], signal))
  const questions = canAskHere(process.env) && !flags.auto
  tackle.subscribe(view.show)
  const { auto = false } = flags
  answerRequests(requestsOf(tackle), { auto, questions, pause: view.pause, signal, interrupt })
  if (recording) tackle.subscribe(recording.take)
  if (task.files === undefined) await reportMissingMentions(task.prompt, tackle, signal)
  const command = task.command ?? (await commandOf(task, tackle, signal))
  recording?.begin({ ...task, files, questions, ...serverPrompt(command) })
  const session = await openSession(tackle, task, flags)
  if (flags.session !== undefined || flags.continue) view.continues(session.info())
  let answer: string | undefined
  const code = await runAndDeliver(session, { tackle, signal }, async () => {
    const { status, text } = await session.prompt(task.prompt, {
      files,
      command,
      signal,
      ...limits,
      model: task.named ? task.model : undefined,
      outputSchema,
    }).completed
    if (outputSchema && flags.format === "text" && status === "completed") answer = text
  })
  await view.end()
  if (answer !== undefined) printLine(answer)
  return code
}

/**
 * Returns the command call in the prompt, or undefined if the prompt does not call a command. If `agent` is set, it
 * takes precedence over the command's agent, unless the command runs as a subtask.
 */
export async function commandOf(
  { prompt, agent }: Pick<RunTask, "prompt" | "agent">,
  tackle: Tackle,
  signal: AbortSignal,
): Promise<CommandCall | undefined> {
  const found = await tackle.readCommand(prompt, { signal })
  if (!("call" in found)) {
    if (found.near !== undefined)
      warn(
        `the command ${shownName(prompt.split(/\s/, 1)[0] ?? "")} does not exist. Did you mean /${found.near}? The text is sent unchanged.`,
      )
    return undefined
  }
  const { agent: _, ...call } = found.call
  checkCommand(found.call, tackle.agents)
  return agent === undefined || found.call.subtask ? found.call : call
}

/**
 * Returns the prompt that an MCP server filled in, or an empty object for other commands. A recording contains this
 * prompt, because a replay cannot request the prompt again.
 */
function serverPrompt(command: CommandCall | undefined): Pick<RunLine, "command"> {
  if (command?.origin !== "mcp") return {}
  const { name, template, arguments: given, origin, description, attachments } = command
  return {
    command: {
      ...{ name, template, arguments: given, origin },
      description,
      attachments: attachments === undefined ? undefined : [...attachments],
    },
  }
}

async function openSession(tackle: Tackle, task: RunTask, flags: RunFlags): Promise<SessionHandle> {
  if (!flags.fork) return findSession(tackle, task, flags)
  if (flags.session === undefined && !flags.continue) {
    throw new UsageError("--fork requires a session to copy: use -c for the latest session, or -s <id>.")
  }
  const from = await findSession(tackle, task, flags)
  return (await tackle.sessions.fork(from.id)) ?? from
}

async function findSession(tackle: Tackle, task: RunTask, flags: RunFlags): Promise<SessionHandle> {
  if (flags.agent !== undefined && (flags.session !== undefined || flags.continue)) {
    throw new UsageError("A continued session keeps its agent. Omit --agent, or start a new session.")
  }
  if (flags.session !== undefined || flags.continue) return storedSession(tackle, flags.session)
  return tackle.sessions.create({
    agent: task.agent,
    model: task.named ? task.model : undefined,
  })
}

/** Returns the error for unknown session ids. `ids` contains at least one. */
export function noSession(...ids: readonly string[]): UsageError {
  const missing = ids.length === 1 ? `session ${ids[0]} does` : `sessions ${ids.join(", ")} do`
  return new UsageError(`The ${missing} not exist. Run \`tackle session list --all\` to list the sessions.`)
}

/**
 * Returns the session with the id or, without an id, the latest session in this project. Throws `UsageError` if the
 * session does not exist or belongs to another project.
 */
export async function storedSession(tackle: Tackle, id: string | undefined): Promise<SessionHandle> {
  if (id === undefined) {
    const session = await tackle.sessions.latest()
    if (!session) throw new UsageError("This project has no sessions yet.")
    return session
  }
  const session = await tackle.sessions.get(id)
  if (!session) throw noSession(id)
  // The session's tools work in its directory, so the config, rules and trust of that directory must apply.
  const { directory, worktree } = session.info()
  if (worktree !== tackle.worktree) {
    throw new UsageError(
      `Session ${id} belongs to ${directory}. To use it, add --dir ${shellWord(directory)}`,
    )
  }
  return session
}
