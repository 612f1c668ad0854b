import { setTimeout as delay } from "node:timers/promises"
import { type Command, Option } from "commander"
import { exitCode, interruptible } from "../process/exit.ts"
import { captureOutput } from "../process/stdout.ts"
import type { InteractiveFlags, StartedScreen } from "../run/interactive.ts"
import { projectFlags, tokenFileFlag } from "./flags.ts"

/** Defines the interactive terminal, which `tackle` without a command opens. */
export function defineInteractive(command: Command): void {
  projectFlags(command)
    .argument("[message...]", "the first prompt")
    .option("-m, --model <name>", "model for a new session, as provider/model")
    .option("--agent <name>", "agent for a new session (default: default_agent in the config, or build)")
    .option("-s, --session <id>", "continue this session")
    .addOption(
      new Option("-c, --continue", "continue the latest session in this project").conflicts("session"),
    )
    .option("--fullscreen", "use the alternate screen instead of the terminal's scrollback")
    .option("--plain", "only append lines, for screen readers and simple terminals")
    .addOption(
      new Option("--attach <url>", "connect to this server and use its config and rules").conflicts("trust"),
    )
    .addOption(tokenFileFlag())
    .action(openInteractive)
}

/** Time in milliseconds that the screen needs to read and show keys. */
const keysMs = 8

/** Opens the interactive terminal. Unless it only appends lines, shows an editor while the program is loading. */
async function openInteractive(message: readonly string[], flags: InteractiveFlags): Promise<void> {
  const isPlain = flags.plain === true || process.env.TERM === "dumb"
  const work = async (signal: AbortSignal, interrupt: () => void) => {
    signal.addEventListener("abort", () => {
      process.exitCode = exitCode.interrupted
    })
    const start = isPlain ? undefined : await openStart(interrupt)
    try {
      // Shows what the user has typed so far, before loading the program blocks the screen.
      await delay(keysMs)
      const prompt = message.length > 0 ? message.join(" ") : undefined
      const { runInteractive } = await import("../run/interactive.ts")
      await runInteractive({ prompt, flags, start, signal })
    } finally {
      start?.end()
      start?.output.end()
    }
  }
  await interruptible(work, { resumeHint: "To continue the session: tackle -c" })
}

/** Shows the start screen. Captures the process's output, so that notices do not appear on the screen. */
async function openStart(interrupt: () => void): Promise<StartedScreen> {
  const { showStartScreen } = await import("../../tui/start-screen.ts")
  const screen = await showStartScreen({ env: process.env, onLeave: interrupt })
  return { ...screen, output: captureOutput() }
}
