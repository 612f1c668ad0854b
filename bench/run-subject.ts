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

/** Work that every subject does. */
export interface Scenario {
  files?: Record<string, string>
  /** Returns the model's replies. The last reply has no calls. `path` returns the absolute path of a project file. */
  replies(tools: Tools, path: (name: string) => string): Reply[]
  /** Returns the reason if the work was not done, and undefined otherwise. A run with a reason is not measured. */
  check?: (run: FinishedRun) => Promise<string | undefined>
}

/** The input of a scenario's check. */
export interface FinishedRun {
  /** Name of the subject. */
  subject: string
  requests: RecordedRequest[]
  /** Reads a file in the project. */
  read(name: string): Promise<string>
}

/** The result of one run. Times are in ms on the clock of this process. */
export interface Trace {
  started: number
  ended: number
  /** Requests in the conversation, one per turn, in order. */
  requests: RecordedRequest[]
  peakBytes: number
}

/** Thrown if a run fails or does not do the work. The message fits on one line. */
export class RunError extends Error {
  override name = "RunError"
}

const prompt = "Do the work of the script."

/**
 * Runs a scenario with a subject in a new project with its own model server. Pass the same home directory again to
 * measure a second run. Throws {@link RunError} if the run fails or exceeds `limitMs`.
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
      if (!reply) throw new RunError(`The script has no turn ${turn + 1}.`)
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

/** Runs a process and writes its output to files. Throws {@link RunError} if the exit code is not 0. */
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
    // Starts a process group, so that every process that the command leaves behind can be ended.
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

/** Returns an environment without the user's settings, keys and proxies. */
export function baseEnvironment({
  home,
  directory,
}: {
  home: string
  directory: string
}): Record<string, string> {
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
