import { visibleWidth } from "@earendil-works/pi-tui"
import type { TackleApi } from "../client/api.ts"
import type { ProjectStatus } from "../engine/tackle.ts"
import { type SessionState, type SessionUsage, usageOf } from "../view/session-state.ts"
import { visible } from "../view/visible.ts"
import { clip } from "./card-parts.ts"
import { createStatusCommand, type StatusInput } from "./status-command.ts"
import type { Theme } from "./theme.ts"

/** The user's settings for the status line. */
export interface StatusSource {
  /** Working directory of sessions that do not exist yet. */
  directory: string
  /** The user's own command for the status line: a program and its arguments. */
  command?: readonly [program: string, ...args: string[]]
}

/** Options for {@link createStatusLine}. */
export interface StatusLineOptions {
  api: Pick<TackleApi, "models" | "project">
  theme: Theme
  source: StatusSource
  /** Called when the line changes but the session does not, for example after the branch changes. */
  onChange(): void
  /** Called the first time that the user's own command fails. */
  onProblem(message: string): void
}

/** Values that can change with each frame. */
export interface StatusFacts {
  agent: string
  /** The model as `provider/model`. */
  model: string | undefined
  /** Hint about keys that are useful at the moment. */
  hint: string
}

/** The line below the editor. */
export interface StatusLine {
  /** Reads the git branch and the state of the sandbox again. */
  refresh(): void
  /** Formats the line. Passes the values to the user's own command, if they have changed. */
  render(state: SessionState | undefined, facts: StatusFacts, width: number): string
  close(): void
}

/** Creates the status line. */
export function createStatusLine({ api, theme, source, onChange, onProblem }: StatusLineOptions): StatusLine {
  const own = source.command && createStatusCommand({ command: source.command, onLine: onChange, onProblem })
  let project: ProjectStatus | undefined
  /** Context sizes of the models in tokens, keyed by `provider/model`. Undefined until a size is needed. */
  let sizes: Map<string, number | undefined> | undefined

  // The first frame does not wait for the test of the sandbox.
  const timer = setTimeout(refresh, firstRefreshMs)

  function refresh(): void {
    api.project().then(
      (next) => {
        const hasChanged = factsOf(next).join() !== factsOf(project).join()
        project = next
        if (hasChanged) onChange()
      },
      // The line keeps its latest values while the server is unreachable.
      () => {},
    )
  }

  function sizeOf(model: string | undefined): number | undefined {
    if (!sizes) {
      sizes = new Map()
      void loadSizes().catch(() => undefined)
    }
    return sizes.get(model ?? "")
  }

  async function loadSizes(): Promise<void> {
    const models = await api.models()
    sizes = new Map(models.map(({ ref, limit }) => [`${ref.providerID}/${ref.modelID}`, limit.context]))
    onChange()
  }

  return {
    refresh,
    render(state, { agent, model, hint }, width) {
      const { contextTokens, cost } = state ? usageOf(state) : noUsage
      const size = contextTokens > 0 ? sizeOf(model) : undefined
      const { id, title, directory = source.directory } = state?.session ?? {}
      own?.update({
        session: id === undefined ? undefined : { id, title: title ?? "" },
        ...{ agent, model, directory, branch: project?.branch, sandbox: sandboxOf(project) },
        ...{ cost, columns: width, isRunning: state?.isRunning === true },
        context: { tokens: contextTokens, share: size && contextTokens / size },
      })
      const facts = [
        agent,
        model ?? "",
        contextTokens > 0 ? contextText(contextTokens, size) : "",
        cost > 0 ? `$${cost.toFixed(cost < 0.1 ? 3 : 2)}` : "",
        ...factsOf(project),
      ].filter((fact) => fact !== "")
      const left =
        own?.line === undefined ? theme.dim(fitting(facts.map(visible), width)) : clip(own.line, width)
      const room = width - visibleWidth(left)
      return hint.length + 2 <= room ? `${left}${theme.dim(hint.padStart(room))}` : left
    },
    close() {
      clearTimeout(timer)
      own?.close()
    },
  }
}

const noUsage: SessionUsage = { contextTokens: 0, cost: 0 }

/** Time in milliseconds before the project's state is read for the first time. */
const firstRefreshMs = 100

/** Returns the state of the sandbox and the branch. Returns an empty list if the project's state is unknown. */
function factsOf(project: ProjectStatus | undefined): string[] {
  if (!project) return []
  return [project.sandbox.works ? "sandbox" : "no sandbox", project.branch ?? ""]
}

function sandboxOf(project: ProjectStatus | undefined): StatusInput["sandbox"] {
  if (!project) return undefined
  return project.sandbox.works ? project.sandbox.kind : "none"
}

/** Joins the facts. Omits the last facts if not all facts fit. The first fact is always shown. */
function fitting(facts: readonly string[], width: number): string {
  let line = ""
  for (const fact of facts) {
    const next = line === "" ? fact : `${line} · ${fact}`
    if (line !== "" && visibleWidth(next) > width) break
    line = next
  }
  return clip(line, width)
}

/** Formats a number of tokens, such as `12.3k`, with its share of the context if the size is known. */
function contextText(tokens: number, size: number | undefined): string {
  const count = tokens < 1_000 ? String(tokens) : `${(tokens / 1_000).toFixed(tokens < 100_000 ? 1 : 0)}k`
  return size === undefined ? `${count} tokens` : `${count} tokens (${Math.round((tokens / size) * 100)}%)`
}
