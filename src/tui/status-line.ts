import { visibleWidth } from "@earendil-works/pi-tui"
import type { TackleApi } from "../client/api.ts"
import type { SessionState } from "../view/session-state.ts"
import { usageOf } from "../view/session-state.ts"
import { visible } from "../view/visible.ts"
import { clip } from "./card.ts"
import { createStatusCommand } from "./status-command.ts"
import type { Theme } from "./theme.ts"

/** Facts about the project for the status line. */
export interface StatusSource {
  /** Working directory of sessions that do not exist yet. */
  directory: string
  /** Returns the checked-out git branch, if any. */
  branch(): Promise<string | undefined>
  /** The user's own command for the status line, as a list of words. */
  command?: readonly [program: string, ...args: string[]]
}

/** Options of {@link createStatusLine}. */
export interface StatusLineOptions {
  api: Pick<TackleApi, "models">
  theme: Theme
  source: StatusSource | undefined
  /** Called when the line looks different, although the session did not change. */
  onChange(): void
  /** Called once if the user's own command fails. */
  onProblem(message: string): void
}

/** Values that change with each frame. */
export interface StatusFacts {
  agent: string
  /** As `provider/model`. */
  model: string | undefined
  /** Hint about keys that are useful at the moment. */
  hint: string
}

/** The line below the editor. */
export interface StatusLine {
  /** Reads the git branch again. */
  refresh(): void
  /** Formats the line. Passes the values to the user's own command, if they have changed. */
  render(state: SessionState | undefined, facts: StatusFacts, width: number): string
  close(): void
}

/** Creates the status line. */
export function createStatusLine({ api, theme, source, onChange, onProblem }: StatusLineOptions): StatusLine {
  const own = source?.command && createStatusCommand({ command: source.command, onLine: onChange, onProblem })
  let branch: string | undefined
  /** Sizes of the models' contexts in tokens, by `provider/model`. Empty until they are needed. */
  let sizes: Map<string, number | undefined> | undefined

  function refresh(): void {
    void source?.branch().then((next) => {
      if (next === branch) return
      branch = next
      onChange()
    })
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

  refresh()
  return {
    refresh,
    render(state, { agent, model, hint }, width) {
      const { contextTokens, cost } = usageOf(state ?? { messages: [] })
      const size = contextTokens > 0 ? (state?.context?.room ?? sizeOf(model)) : undefined
      const { id, title, directory = source?.directory ?? "" } = state?.session ?? {}
      own?.update({
        session: id === undefined ? undefined : { id, title: title ?? "" },
        ...{ agent, model, directory, branch, cost, columns: width, isRunning: state?.isRunning === true },
        context: { tokens: contextTokens, share: size && contextTokens / size },
      })
      const facts = [
        agent,
        model ?? "",
        contextTokens > 0 ? contextText(contextTokens, size) : "",
        cost > 0 ? `$${cost.toFixed(cost < 0.1 ? 3 : 2)}` : "",
        branch ?? "",
      ].filter((fact) => fact !== "")
      const left =
        own?.line === undefined ? theme.dim(fitting(facts.map(visible), width)) : clip(own.line, width)
      const room = width - visibleWidth(left)
      return hint.length + 2 <= room ? `${left}${theme.dim(hint.padStart(room))}` : left
    },
    close: () => own?.close(),
  }
}

/** Joins the facts. Omits those that do not fit, except the first. */
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
