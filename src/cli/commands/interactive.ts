import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { type Command, Option } from "commander"
import type { SessionApi, TackleApi } from "../../client/api.ts"
import { openTerminal } from "../../tui/open.ts"
import { displayPath } from "../../view/display-path.ts"
import { exitCode, interruptible } from "../process/exit.ts"
import { printHint, printLine } from "../process/stdout.ts"
import { setUpModel } from "../run/first-start.ts"
import { followByLines, showRecent } from "../run/follow-by-lines.ts"
import { createView } from "../run/foreground.ts"
import { openClient, type RemoteFlags } from "../run/remote.ts"
import { namedSession } from "../run/run-on-server.ts"
import { openTackle } from "../workspace/engine.ts"
import type { RuleFlags } from "../workspace/rules.ts"
import { directoryOf, openWorkspace, type WorkspaceFlags } from "../workspace/workspace.ts"
import { projectFlags, tokenFileFlag } from "./flags.ts"
import { storedSession } from "./run.ts"

/** Defines the interactive terminal, which `tackle` without a command opens. */
export function defineInteractive(command: Command): void {
  projectFlags(command)
    .argument("[message...]", "the first prompt")
    .option("-m, --model <name>", "model of a new session, as provider/model")
    .option("--agent <name>", "agent of a new session (default: build)")
    .option("-s, --session <id>", "continue this session")
    .addOption(new Option("-c, --continue", "continue the last session of this project").conflicts("session"))
    .option("--fullscreen", "use the alternate screen instead of the terminal's scrollback")
    .option("--plain", "only append lines, for screen readers and simple terminals")
    .addOption(new Option("--attach <url>", "use this server, with its config and rules").conflicts("trust"))
    .addOption(tokenFileFlag())
    .action(openInteractive)
}

/** Flags of the interactive terminal. */
export interface InteractiveFlags extends WorkspaceFlags, RuleFlags, RemoteFlags {
  model?: string
  agent?: string
  /** Id of the session to continue. `continue` selects the last session of the project. */
  session?: string
  continue?: boolean
  fullscreen?: boolean
  /** Appends lines instead of drawing a screen. Default: true if `TERM` is `dumb`. */
  plain?: boolean
  /** URL of a server. */
  attach?: string
}

async function openInteractive(message: readonly string[], flags: InteractiveFlags): Promise<void> {
  const prompt = message.length > 0 ? message.join(" ") : undefined
  const isPlain = flags.plain || process.env.TERM === "dumb"
  const open = (opened: Opened, signal: AbortSignal) =>
    isPlain
      ? openPlain({ ...opened, prompt, signal })
      : openTerminal({ ...opened, prompt, signal, env: process.env, fullscreen: flags.fullscreen })
  const id = await interruptible(async (signal) => {
    signal.addEventListener("abort", () => {
      process.exitCode = exitCode.interrupted
    })
    if (flags.attach !== undefined) return open(await openRemote(flags.attach, flags), signal)
    const workspace = await openWorkspace(flags)
    const model = flags.model ?? workspace.config.config.model ?? (await setUpModel(workspace))
    const tackle = await openTackle(workspace, flags, { model, approvals: true, questions: true })
    try {
      const isStored = flags.session !== undefined || flags.continue
      const session = isStored ? await storedSession(tackle, flags.session) : undefined
      const { directory, worktree, home } = workspace
      const branch = await branchOf(worktree)
      return await open(
        {
          ...{ api: tackle, session, defaults: { agent: flags.agent, model } },
          welcome: [`Tackle in ${displayPath(directory, home) === "." ? "~" : directory}`],
          facts: branch === undefined ? [] : [branch],
        },
        signal,
      )
    } finally {
      await tackle.close()
    }
  })
  if (id !== undefined) printHint(`Continue this session: tackle -s ${id}`)
}

/** The engine and the first session of the interface. */
interface Opened {
  api: TackleApi
  session: SessionApi | undefined
  defaults: { agent?: string; model?: string }
  welcome: readonly string[]
  facts: readonly string[]
}

/** Runs a session by lines. Returns its id, or undefined if stdin ended before the first prompt. */
async function openPlain({
  api,
  session,
  defaults,
  welcome,
  prompt,
  signal,
}: Opened & { prompt: string | undefined; signal: AbortSignal }): Promise<string | undefined> {
  // Programs that the session starts also see that the terminal is simple.
  process.env.TERM = "dumb"
  for (const line of welcome) printLine(line)
  const first = prompt ?? (session ? undefined : await firstLine(signal))
  if (!session && first === undefined) return undefined
  const opened = session ?? (await api.sessions.create(defaults))
  const info = await opened.info()
  const view = createView({ format: "text" }, info)
  const after = await opened.sequence()
  if (session) {
    view.continues(info)
    await showRecent(opened, view)
  }
  await followByLines({ api, session: opened, worktree: info.worktree, after, view, prompt: first, signal })
  return opened.id
}

/** Reads the first line of stdin that is not empty. */
async function firstLine(signal: AbortSignal): Promise<string | undefined> {
  printLine("Type a prompt and press Enter. Ctrl+D leaves.")
  const lines = createInterface({ input: process.stdin, terminal: false, signal })
  for await (const line of lines) if (line.trim() !== "") return line.trim()
  return undefined
}

async function openRemote(url: string, flags: InteractiveFlags): Promise<Opened> {
  const directory = directoryOf(flags.dir)
  const client = openClient(url, flags, directory)
  const isStored = flags.session !== undefined || flags.continue
  return {
    api: client,
    session: isStored ? await namedSession(client, flags.session) : undefined,
    defaults: { agent: flags.agent, model: flags.model },
    welcome: [`Tackle at ${url}, in ${directory}`],
    facts: [],
  }
}

/** Returns the checked-out git branch of a worktree, if any. */
async function branchOf(worktree: string): Promise<string | undefined> {
  const head = await readFile(join(worktree, ".git/HEAD"), "utf8").catch(() => "")
  return /^ref: refs\/heads\/(.+)/.exec(head)?.[1]
}
