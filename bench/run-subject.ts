import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir, open, readFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { type RecordedRequest, startModelServer } from "../src/testing/model-server.ts"
import { temporaryProject } from "../src/testing/project.ts"
import type { Reply } from "../src/testing/reply.ts"
import { systemCode } from "../src/util/errors.ts"
import { chatTurn } from "./chat-turn.ts"
import { watchPeakMemory } from "./peak-memory.ts"
import type { Launch, Subject, Tools } from "./subject.ts"

/** The work that every subject is given. */
export interface Scenario {
  files?: Record<string, string>
  /** What the model says, turn by turn. The last reply has no calls. `path` makes a name of the project absolute. */
  replies(tools: Tools, path: (name: string) => string): Reply[]
  /** Why the subject did not do the work, if so: a figure of undone work is worth nothing. */
  check?: (run: FinishedRun) => Promise<string | undefined>
}

/** What a scenario's check looks at. */
export interface FinishedRun {
  /** The name of the subject. */
  subject: string
  requests: RecordedRequest[]
  /** The text of a file of the project. */
  read(name: string): Promise<string>
}

/** What one run showed. Times are milliseconds on the clock of this process. */
export interface Trace {
  started: number
  ended: number
  /** The requests of the conversation, one a turn, in order. */
  requests: RecordedRequest[]
  peakBytes: number
}

/** The run did not come about, or did not do the work. The message fits into a line. */
export class RunError extends Error {
  override name = "RunError"
}

const prompt = "Do the work of the script."

/**
 * Lets a subject do a scenario in a fresh project against a model server of its own. The home stays: pass the same one
 * to measure a second run rather than a first. Throws {@link RunError} when it fails, or runs longer than `limitMs`.
 */
export async function runSubject(
  subject: Subject,
  scenario: Scenario,
  { home, limitMs }: { home: string; limitMs: number },
): Promise<Trace> {
  const project = await temporaryProject(scenario.files)
  try {
    const replies = scenario.replies(subject.tools, project.path)
    const trace = await converse(subject, replies, { home, directory: project.directory, limitMs })
    const { requests } = trace
    if (requests.length !== replies.length) {
      throw new RunError(`made ${requests.length} of ${replies.length} requests`)
    }
    const problem = await scenario.check?.({ subject: subject.name, requests, read: project.read })
    if (problem) throw new RunError(problem)
    return trace
  } finally {
    await project.remove()
  }
}

async function converse(
  subject: Subject,
  replies: Reply[],
  { home, directory, limitMs }: { home: string; directory: string; limitMs: number },
): Promise<Trace> {
  const requests: RecordedRequest[] = []
  const turnOf = subject.turn ?? chatTurn
  const server = await startModelServer({
    formats: subject.format ? [subject.format] : [],
    script(request) {
      const turn = turnOf(request.body)
      if (turn === undefined) return { text: "Work" }
      const reply = replies[turn]
      if (!reply) throw new RunError(`There is no turn ${turn + 1} in this script.`)
      requests.push(request)
      return reply
    },
  })
  try {
    const place = { directory, home, url: server.url, port: server.port, prompt }
    await mkdir(home, { recursive: true })
    await subject.prepare?.(place)
    const group = subject.launcher ?? false
    return { ...(await runProcess(subject.launch(place), { home, directory, limitMs, group })), requests }
  } finally {
    await server.close()
  }
}

/** Runs a process to its end, with its output in files. Throws {@link RunError} on another exit code than 0. */
export async function runProcess(
  { command, args, env }: Launch,
  options: { home: string; directory: string; limitMs: number; group?: boolean },
): Promise<{ started: number; ended: number; peakBytes: number }> {
  const outputs = [join(options.home, "stdout.log"), join(options.home, "stderr.log")] as const
  const [stdout, stderr] = await Promise.all(outputs.map((path) => open(path, "w")))
  const started = performance.now()
  const child = spawn(command, args, {
    cwd: options.directory,
    env: { ...baseEnvironment(options), ...env },
    // An own group, so that whatever it leaves behind can be ended with it.
    detached: true,
    stdio: ["ignore", stdout?.fd ?? "ignore", stderr?.fd ?? "ignore"],
  })
  const exit = once(child, "exit").then(([code, signal]) => ({ code, signal, ended: performance.now() }))
  const pid = child.pid ?? 0
  const memory = watchPeakMemory(pid, { group: options.group ?? false })
  let late = false
  const timer = setTimeout(() => {
    late = true
    killGroup(pid)
  }, options.limitMs)
  try {
    const { code, signal, ended } = await exit
    if (late) throw new RunError(`not done after ${options.limitMs / 1000} s`)
    if (code !== 0) throw new RunError(`exit ${code ?? signal}: ${await lastLine(outputs)}`)
    return { started, ended, peakBytes: memory.stop() }
  } finally {
    clearTimeout(timer)
    memory.stop()
    killGroup(pid)
    await Promise.all([stdout?.close(), stderr?.close()])
  }
}

/** Nothing of the person's own settings, keys and proxies. */
function baseEnvironment({ home, directory }: { home: string; directory: string }): Record<string, string> {
  return {
    PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ""}`,
    HOME: home,
    PWD: directory,
    LANG: "C.UTF-8",
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local/share"),
    XDG_STATE_HOME: join(home, ".local/state"),
    XDG_CACHE_HOME: join(home, ".cache"),
  }
}

async function lastLine(files: readonly string[]): Promise<string> {
  for (const file of files.toReversed()) {
    const line = (await readFile(file, "utf8")).trim().split("\n").at(-1)
    if (line) return line.slice(0, 200)
  }
  return "no output"
}

function killGroup(pid: number): void {
  if (pid === 0) return
  try {
    process.kill(-pid, "SIGKILL")
  } catch (error) {
    if (systemCode(error) !== "ESRCH") throw error
  }
}
