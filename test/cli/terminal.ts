import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { type Machine, tackleCommand, until } from "./run-tackle.ts"

/** A terminal of 80 by 24 with a shell in the machine's project. It is closed with the test. */
export interface Terminal {
  /** Clears the screen, types `tackle` with the arguments, and afterwards prints `[exit N]`. */
  tackle(...args: string[]): Promise<void>
  /** Types a line of shell. */
  type(line: string): Promise<void>
  /** Presses keys by tmux's names: `Enter`, `Down`, `C-c`, or text. */
  press(...keys: string[]): Promise<void>
  /** Pastes text as a terminal does, with marks around it if the program requests them. */
  paste(text: string): Promise<void>
  /** Returns all output, on the screen and above it. */
  screen(): Promise<string>
  /** Waits for the text and returns the whole screen. */
  sees(text: string | RegExp): Promise<string>
  /** Returns the lines that the terminal wrapped because they were too long. */
  broken(): Promise<string[]>
  cursorIsVisible(): Promise<boolean>
  /** Returns true while the program uses the alternate screen. */
  isAlternate(): Promise<boolean>
  /** Returns the visible lines with the sequences that set colors and styles. */
  styled(): Promise<string>
  /** Sets the background color, as `#rrggbb`, which the terminal reports to programs. */
  setBackground(color: string): Promise<void>
  /** Changes the size of the window. */
  resize(columns: number, rows: number): Promise<void>
  /** Sends a signal to the program in the foreground. Default: SIGTERM. */
  terminate(signal?: NodeJS.Signals): Promise<void>
  /** Begins to note what programs write to the terminal. */
  log(): Promise<void>
  /** Returns what programs have written since {@link log}. */
  logged(): Promise<string>
  /** Closes the window as a user would. */
  close(): Promise<void>
}

/** False where tmux is not installed. */
export const hasTmux = (() => {
  try {
    execFileSync("tmux", ["-V"])
    return true
  } catch {
    return false
  }
})()

export async function openTerminal(
  machine: Machine,
  env: Record<string, string | undefined> = {},
): Promise<Terminal> {
  const place = await mkdtemp(join(tmpdir(), "tackle-tmux-"))
  const all = Object.entries({ ...machine.env, PS1: "$ ", ...env }).filter((entry) => entry[1] !== undefined)
  const script = join(place, "env.sh")
  await writeFile(script, all.map(([name, value]) => `export ${name}=${quote(String(value))}\n`).join(""))
  const { tmux, end } = await startTmux(join(place, "socket"), [
    ...["-x", "80", "-y", "24", "-c", machine.project.directory],
    ...["env", "-i", "TERM=screen-256color", `ENV=${script}`, "/bin/sh", "-i"],
  ])
  onTestFinished(async () => {
    await end()
    await rm(place, { recursive: true, force: true })
  })

  const record = join(place, "output")
  await writeFile(record, "")
  await tmux("pipe-pane", `cat >> ${record}`)
  let logStart = 0

  const capture = (...flags: string[]) => tmux("capture-pane", "-p", ...flags, "-S", "-500")
  const terminal: Terminal = {
    async tackle(...args) {
      const words = [tackleCommand, ...args].map(quote).join(" ")
      await writeFile(join(place, "go"), `${words}\necho "[exit $?]"\n`)
      await tmux("send-keys", "-R")
      await tmux("clear-history")
      await terminal.type(`. ${place}/go`)
    },
    async type(line) {
      await tmux("send-keys", "-l", line)
      await tmux("send-keys", "Enter")
    },
    async press(...keys) {
      await tmux("send-keys", ...keys)
    },
    async paste(text) {
      await writeFile(join(place, "pasted"), text)
      await tmux("load-buffer", join(place, "pasted"))
      await tmux("paste-buffer", "-p", "-r")
    },
    screen: async () => (await capture()).trimEnd(),
    async sees(text) {
      let screen = ""
      let length = -1
      let last = 0
      try {
        await until(`"${text}" on the screen`, async () => {
          // Most reads of the screen would find no change.
          const { size } = await stat(record)
          if (Date.now() - last < (size === length ? 200 : 40)) return false
          length = size
          last = Date.now()
          screen = await terminal.screen()
          return typeof text === "string" ? screen.includes(text) : text.test(screen)
        })
      } catch (error) {
        throw new Error(`${String(error)}\n${screen}`)
      }
      return screen
    },
    async broken() {
      const lines = (await capture("-J")).split("\n").map((line) => line.trimEnd())
      return lines.filter((line) => [...line].length > 80)
    },
    cursorIsVisible: async () => (await tmux("display-message", "-p", "#{cursor_flag}")).trim() === "1",
    isAlternate: async () => (await tmux("display-message", "-p", "#{alternate_on}")).trim() === "1",
    styled: () => tmux("capture-pane", "-p", "-e"),
    async setBackground(color) {
      await tmux("set", "-g", "window-style", `bg=${color},fg=#808080`)
    },
    async resize(columns, rows) {
      await tmux("resize-window", "-x", String(columns), "-y", String(rows))
    },
    async terminate(signal = "SIGTERM") {
      const shell = Number((await tmux("display-message", "-p", "#{pane_pid}")).trim())
      const children = await readFile(`/proc/${shell}/task/${shell}/children`, "utf8")
      process.kill(Number(children.trim().split(" ")[0]), signal)
    },
    async log() {
      logStart = (await stat(record)).size
    },
    logged: async () => (await readFile(record)).subarray(logStart).toString(),
    close: end,
  }
  await terminal.sees(/\$$/)
  return terminal
}

/**
 * Starts a tmux server with one session. It is controlled through one process, because a process for each command takes
 * much longer than the command. It ends with this process.
 */
async function startTmux(socket: string, session: readonly string[]) {
  const child = spawn(
    "tmux",
    [
      ...["-u", "-S", socket, "-f", "/dev/null", "-C", "new-session", "-f", "no-output,ignore-size"],
      ...session,
      ...[";", "set-option", "-g", "destroy-unattached", "on"],
    ],
    { stdio: ["pipe", "pipe", "ignore"] },
  )
  const closed = once(child, "close")
  const started = Promise.withResolvers<void>()
  /** The commands that have no answer yet, in order. */
  const waiting: PromiseWithResolvers<string>[] = []
  /** The answer that is being read. Its first and last line have the same id. */
  let answer: { id: string; lines: string[] } | undefined
  let rest = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = `${rest}${text}`.split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) {
      // The answers to the commands of the start end with 0.
      const [, kind, id] = /^%(begin|end|error) (.* 1)$/.exec(line) ?? []
      if (!answer) {
        if (kind === "begin" && id) answer = { id, lines: [] }
        if (line.startsWith("%session-changed ")) started.resolve()
      } else if (id === answer.id && kind !== "begin") {
        const said = answer.lines.join("\n")
        answer = undefined
        if (kind === "end") waiting.shift()?.resolve(said)
        else waiting.shift()?.reject(new Error(`tmux: ${said}`))
      } else answer.lines.push(line)
    }
  })
  child.stdin.on("error", () => {})
  void closed.then(() => {
    for (const { reject } of [started, ...waiting]) reject(new Error("tmux has ended."))
  })
  await started.promise
  return {
    /** Runs a command of tmux and returns its output. */
    async tmux(...args: string[]): Promise<string> {
      if (child.exitCode !== null) throw new Error("tmux has ended.")
      const answered = Promise.withResolvers<string>()
      waiting.push(answered)
      child.stdin.write(`${args.map(quote).join(" ")}\n`)
      return await answered.promise
    },
    /** Ends the server and all programs in it. */
    async end(): Promise<void> {
      child.stdin.end("kill-server\n")
      await closed
    },
  }
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
