import type { SessionApi, TackleApi } from "../../client/api.ts"
import { describeProblem } from "../../config/errors.ts"
import { loadConfig } from "../../config/load.ts"
import { openTerminal } from "../../tui/open.ts"
import type { StartScreen } from "../../tui/start-screen.ts"
import type { StatusSource } from "../../tui/status-line.ts"
import { homeDirectory } from "../../util/paths.ts"
import { displayPath } from "../../view/display-path.ts"
import { storedSession } from "../commands/run.ts"
import { warn } from "../process/notice.ts"
import { type CapturedOutput, printHint, printLine } from "../process/stdout.ts"
import { openTackle } from "../workspace/engine.ts"
import type { RuleFlags } from "../workspace/rules.ts"
import { directoryOf, openWorkspace, type Workspace, type WorkspaceFlags } from "../workspace/workspace.ts"
import { offline, setUpModel } from "./choose-model.ts"
import { followByLines, openLines, showRecent } from "./follow-by-lines.ts"
import { createView } from "./foreground.ts"
import { namedSession, openClient, type RemoteFlags, serverFlags } from "./remote.ts"

/** Flags for the interactive terminal. */
export interface InteractiveFlags extends WorkspaceFlags, RuleFlags, RemoteFlags {
  model?: string
  agent?: string
  /** Id of the session to continue. `continue` selects the latest session in the project. */
  session?: string
  continue?: boolean
  fullscreen?: boolean
  /** Whether to append lines instead of drawing a screen. Default: true if `TERM` is `dumb`. */
  plain?: boolean
  /** URL of the server to connect to. */
  attach?: string
}

/** The start screen, and the output that other code writes while this screen is shown. */
export interface StartedScreen extends StartScreen {
  output: CapturedOutput
}

/** Options for {@link runInteractive}. */
export interface InteractiveOptions {
  prompt: string | undefined
  flags: InteractiveFlags
  /** Screen that is shown until the interface is ready. Undefined in line mode. */
  start: StartedScreen | undefined
  signal: AbortSignal
}

/** Opens the engine or the connection to a server, and shows the interface until the user quits. */
export async function runInteractive(options: InteractiveOptions): Promise<void> {
  const { flags, start } = options
  const id =
    flags.attach === undefined
      ? await openLocal(options)
      : await show(options, await openRemote(flags.attach, flags))
  start?.end()
  start?.output.end()
  const server = flags.attach === undefined ? "" : ` ${serverFlags(flags.attach, flags)}`
  if (id !== undefined) printHint(`Continue this session: tackle${server} -s ${id}`)
}

async function openLocal(options: InteractiveOptions): Promise<string | undefined> {
  const { flags } = options
  const workspace = await openWorkspace(flags)
  const configured = flags.model ?? workspace.config.config.model
  const model = configured ?? (await askForModel(workspace, options))
  const tackle = await openTackle(workspace, flags, { model, approvals: true, questions: true })
  try {
    const isStored = flags.session !== undefined || flags.continue
    const session = isStored ? await storedSession(tackle, flags.session) : undefined
    const { directory, home } = workspace
    return await show(options, {
      ...{ api: tackle, isRemote: false, session, defaults: { agent: flags.agent, model } },
      welcome: [
        `Tackle in ${displayPath(directory, home) === "." ? "~" : directory}`,
        ...(configured === undefined && model === offline ? withoutModel : []),
      ],
      status: { directory, command: workspace.config.config.status_line },
    })
  } finally {
    await tackle.close()
  }
}

const withoutModel = [
  "No model is connected, so a demo with simple rules answers.",
  "To connect a model, quit and start tackle again.",
]

/** Asks for the first model. Ends the start screen first, because the questions need the terminal. */
function askForModel(workspace: Workspace, { start }: InteractiveOptions): Promise<string> {
  start?.end()
  start?.output.end()
  return setUpModel(workspace)
}

function show(
  { prompt, flags, start, signal }: InteractiveOptions,
  opened: Opened,
): Promise<string | undefined> {
  if (!start) return openPlain({ ...opened, prompt, signal })
  return openTerminal({
    ...{ ...opened, prompt, start, signal, notices: start.output.listen },
    ...{ env: process.env, fullscreen: flags.fullscreen },
  })
}

/** The engine and the first session of the interface. */
interface Opened {
  api: TackleApi
  /** Whether the engine runs on a server. */
  isRemote: boolean
  session: SessionApi | undefined
  defaults: { agent?: string; model?: string }
  welcome: readonly string[]
  status: StatusSource
}

/** Runs a session in line mode. Returns its id, or undefined if stdin ended before the first prompt. */
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
  const lines = openLines(signal)
  if (prompt === undefined && !session) printLine("Type a prompt and press Enter. Press Ctrl+D to quit.")
  const first = prompt ?? (session ? undefined : await lines.next())
  if (!session && first === undefined) return undefined
  const opened = session ?? (await api.sessions.create(defaults))
  const info = await opened.info()
  const view = createView({ format: "text", takesPrompts: true }, info)
  try {
    const after = await opened.sequence()
    if (session) {
      view.continues(info)
      await showRecent(opened, view)
    }
    const { worktree } = info
    await followByLines({
      ...{ api, session: opened, worktree, after, view, prompt: first, lines, signal },
      interruptsRun: true,
    })
  } finally {
    await view.end()
  }
  return opened.id
}

async function openRemote(url: string, flags: InteractiveFlags): Promise<Opened> {
  const directory = directoryOf(flags.dir)
  const client = openClient(url, flags, directory)
  const isStored = flags.session !== undefined || flags.continue
  return {
    api: client,
    isRemote: true,
    session: isStored ? await namedSession(client, flags.session) : undefined,
    defaults: { agent: flags.agent, model: flags.model },
    welcome: [`Tackle at ${url}, in ${directory}`],
    status: { directory, command: await ownStatusCommand() },
  }
}

/** Returns the command for the status line from the user's own config. Does not read any project's config. */
async function ownStatusCommand(): Promise<StatusSource["command"]> {
  const home = homeDirectory()
  const { config } = await loadConfig({
    ...{ home, directory: home, worktree: home, environment: process.env, trusted: false },
    onProblems: (problems) => problems.map(describeProblem).forEach(warn),
  })
  return config.status_line
}
