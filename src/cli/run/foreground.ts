import type { TackleOptions } from "../../engine/options.ts"
import type { Tackle } from "../../engine/tackle.ts"
import { useNetworkSettings } from "../../model/proxy.ts"
import { TimeoutError } from "../../util/abort.ts"
import { noteTimeLimit } from "../../util/main-thread.ts"
import { interruptible } from "../process/exit.ts"
import { stdout } from "../process/stdout.ts"
import { createTextView, type TextViewOptions } from "../view/text.ts"
import { createJsonView, type View } from "../view/view.ts"
import { openTackle } from "../workspace/engine.ts"
import type { RuleFlags } from "../workspace/rules.ts"
import type { FormatFlags, Workspace } from "../workspace/workspace.ts"

/** Flags for commands that run a session in the foreground. */
export interface ForegroundFlags extends FormatFlags, RuleFlags {
  quiet?: boolean
  auto?: boolean
  /** Time limit in seconds. */
  timeout?: number
}

/** A run of a session in the foreground. */
export interface Foreground {
  tackle: Tackle
  view: View
  /** Aborts on Ctrl+C, on a signal to the process, and at the time limit. */
  signal: AbortSignal
  interrupt(reason?: unknown): void
}

/**
 * Opens an engine and a view of its events, calls `work`, and sets the exit code to the result of `work`. `overrides`
 * take precedence over the options from the config.
 */
export async function inForeground(
  {
    flags,
    rules,
    workspace,
    overrides,
  }: {
    flags: ForegroundFlags & { outputSchema?: string; database?: string }
    rules: RuleFlags
    workspace: Workspace
    overrides: Partial<TackleOptions>
  },
  work: (foreground: Foreground) => Promise<number>,
): Promise<void> {
  // The URL may contain a password.
  const serverFlags = flags.database === undefined ? undefined : '--database "…"'
  const restoreNetwork = await useNetworkSettings(workspace.environment)
  const view = createView({ ...flags, serverFlags }, workspace)
  process.once("exit", view.exited)
  try {
    process.exitCode = await interruptible(
      async (signal, interrupt) => {
        // The limit includes the start of the engine, because this may load tools and plugins.
        const stopTimer = startTimeLimit(flags.timeout, { signal, interrupt })
        try {
          const tackle = await openTackle(workspace, rules, overrides)
          try {
            return await work({ tackle, view, signal, interrupt })
          } finally {
            stopTimer()
            await tackle.close()
          }
        } finally {
          stopTimer()
        }
      },
      { resumeHint: `To continue the session: tackle run${serverFlags ? ` ${serverFlags}` : ""} -c "…"` },
    )
  } finally {
    process.off("exit", view.exited)
    await view.end()
    restoreNetwork()
  }
}

/**
 * Creates the view that the flags select. With `outputSchema`, all text goes to stderr. Set `takesPrompts` if the user
 * sends the next prompt in the view.
 */
export function createView(
  {
    format,
    quiet = false,
    outputSchema,
    takesPrompts,
    serverFlags,
  }: Pick<ForegroundFlags, "format" | "quiet"> &
    Pick<TextViewOptions, "takesPrompts" | "serverFlags"> & { outputSchema?: string },
  { worktree }: Pick<Workspace, "worktree">,
): View {
  if (format === "json") return createJsonView(stdout)
  // With a schema, stdout contains only the JSON answer.
  const output = outputSchema === undefined ? stdout : process.stderr
  return createTextView({ output, notes: process.stderr, worktree, quiet, takesPrompts, serverFlags })
}

/** Starts a timer that interrupts the run at its time limit. Returns a function that stops the timer. */
export function startTimeLimit(
  seconds: number | undefined,
  { signal, interrupt }: Pick<Foreground, "signal" | "interrupt">,
) {
  if (seconds === undefined) return () => {}
  const text = `The run was stopped, because it reached the --timeout limit of ${seconds} s.`
  const endNote = noteTimeLimit(seconds * 1000, text)
  const timer = setTimeout(() => {
    endNote()
    // If the timer fired after an interrupt, it would count as a second interrupt and end the process immediately.
    if (!signal.aborted) interrupt(new TimeoutError(text, seconds * 1000))
  }, seconds * 1000)
  return () => {
    clearTimeout(timer)
    endNote()
  }
}
