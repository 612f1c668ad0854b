import { throwIfAborted } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { type RecordTree, type RunningProcess, startProcess } from "../util/process.ts"
import { shellWord } from "../util/words.ts"

/** The part of Bun's `$` that plugins use: a template tag that inserts values as words of a shell command. */
export interface Shell {
  (strings: TemplateStringsArray, ...values: unknown[]): ShellRun
  escape(text: string): string
  cwd(directory?: string): Shell
  env(variables?: Readonly<Record<string, string | undefined>>): Shell
  nothrow(): Shell
  throws(shouldThrow: boolean): Shell
}

/** A shell command that starts when it is awaited or its output is requested. */
export interface ShellRun extends PromiseLike<ShellOutput> {
  cwd(directory: string): ShellRun
  env(variables: Readonly<Record<string, string | undefined>> | undefined): ShellRun
  /** Has no effect, because output is never shown. Exists for compatibility with Bun. */
  quiet(): ShellRun
  nothrow(): ShellRun
  throws(shouldThrow: boolean): ShellRun
  catch<T>(onRejected: (error: unknown) => T | PromiseLike<T>): Promise<ShellOutput | T>
  finally(onEnd: () => void): Promise<ShellOutput>
  text(): Promise<string>
  json(): Promise<unknown>
  lines(): AsyncIterable<string>
  arrayBuffer(): Promise<ArrayBuffer>
  bytes(): Promise<Uint8Array>
}

/** The output of a command. */
export interface ShellOutput {
  stdout: Buffer
  stderr: Buffer
  exitCode: number
  text(): string
  json(): unknown
  bytes(): Uint8Array
}

/** Thrown when a plugin's shell command fails. */
class ShellFailedError extends TackleError {
  readonly stdout: Buffer
  readonly stderr: Buffer
  readonly exitCode: number
  /** `end` describes how the command ended, as a phrase that follows the command. */
  constructor(command: string, end: string, { stdout, stderr, exitCode }: ShellOutput) {
    const said = stderr.toString().trim().slice(-500)
    super(`"${command}" ${end}${said === "" ? "" : `: ${said}`}`, {
      code: "plugin.shell",
      recoverable: true,
    })
    this.stdout = stdout
    this.stderr = stderr
    this.exitCode = exitCode
  }
}

interface ShellSettings {
  cwd: string
  environment: Readonly<Record<string, string | undefined>>
  /** Signal that ends running commands. */
  signal: AbortSignal
  /** Records running commands. See `ProcessOptions`. */
  record?: RecordTree | undefined
  nothrow?: boolean
}

/** Maximum output of a command, in bytes. A command that exceeds this limit is killed. */
const maxOutputBytes = 32 * 1024 * 1024

/** Creates a `$` function. Commands run in `/bin/sh` with empty standard input. */
export function createShell(settings: ShellSettings): Shell {
  const change = (changes: Partial<ShellSettings>) => createShell({ ...settings, ...changes })
  const tag = (strings: TemplateStringsArray, ...values: unknown[]) =>
    shellRun(commandText(strings, values), settings)
  return Object.assign(tag, {
    escape: shellWord,
    cwd: (directory = settings.cwd) => change({ cwd: directory }),
    env: (variables: ShellSettings["environment"] = settings.environment) =>
      change({ environment: variables }),
    nothrow: () => change({ nothrow: true }),
    throws: (shouldThrow: boolean) => change({ nothrow: !shouldThrow }),
  })
}

/**
 * Returns the command text. Each value becomes one word, and a list becomes one word per entry. Only `{ raw }` is
 * inserted as shell text.
 */
function commandText(strings: TemplateStringsArray, values: readonly unknown[]): string {
  return strings.raw.reduce((text, part, index) => `${text}${toWords(values[index - 1])}${part}`)
}

function toWords(value: unknown): string {
  if (Array.isArray(value)) return value.map(toWords).join(" ")
  if (isRecord(value) && typeof value.raw === "string") return value.raw
  return shellWord(String(value))
}

function shellRun(command: string, settings: ShellSettings): ShellRun {
  let started: Promise<ShellOutput> | undefined
  const start = () => {
    started ??= execute(command, settings)
    return started
  }
  const change = (changes: Partial<ShellSettings>) => shellRun(command, { ...settings, ...changes })
  return {
    cwd: (directory) => change({ cwd: directory }),
    env: (variables = settings.environment) => change({ environment: variables }),
    quiet: () => change({}),
    nothrow: () => change({ nothrow: true }),
    throws: (shouldThrow) => change({ nothrow: !shouldThrow }),
    // biome-ignore lint/suspicious/noThenProperty: Bun's `$` also returns a thenable.
    then: (onFulfilled, onRejected) => start().then(onFulfilled, onRejected),
    catch: (onRejected) => start().catch(onRejected),
    finally: (onEnd) => start().finally(onEnd),
    text: async () => (await start()).text(),
    json: async () => (await start()).json(),
    async *lines() {
      yield* (await start()).text().replace(/\n$/, "").split("\n")
    },
    arrayBuffer: async () => Uint8Array.from((await start()).stdout).buffer,
    bytes: async () => (await start()).bytes(),
  }
}

async function execute(
  command: string,
  { cwd, environment, signal, record, nothrow }: ShellSettings,
): Promise<ShellOutput> {
  throwIfAborted(signal)
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  let left = maxOutputBytes
  const collect = (into: Buffer[]) => (bytes: Uint8Array) => {
    left -= bytes.length
    if (left < 0) stop(`was stopped, because its output exceeded ${maxOutputBytes / 2 ** 20} MiB`)
    else into.push(Buffer.from(bytes))
  }
  /** Undefined until the command has started. */
  let running: RunningProcess | undefined
  let killed: Promise<void> | undefined
  let stopped: string | undefined
  const stop = (why: string) => {
    stopped ??= why
    killed ??= running?.kill()
  }
  const onAbort = () => stop("was stopped, because Tackle is closing")
  const child = await startProcess({
    argv: ["/bin/sh", "-c", command],
    cwd,
    env: environment,
    onOutput: collect(stdout),
    onErrorOutput: collect(stderr),
    record,
  })
  running = child
  if (stopped !== undefined) stop(stopped)
  signal.addEventListener("abort", onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    const { code, signal: ending } = await child.exited
    await child.closed
    await killed
    // The output of a stopped command is incomplete, even if the command ended with exit code 0.
    const exitCode = stopped === undefined ? (code ?? 1) : code || 1
    const output = outputOf(Buffer.concat(stdout), Buffer.concat(stderr), exitCode)
    const end = stopped ?? (ending ? `was ended by ${ending}` : `ended with exit code ${output.exitCode}`)
    if (output.exitCode !== 0 && !nothrow) throw new ShellFailedError(command, end, output)
    return output
  } finally {
    signal.removeEventListener("abort", onAbort)
    child.removeRecords()
  }
}

function outputOf(stdout: Buffer, stderr: Buffer, exitCode: number): ShellOutput {
  return {
    stdout,
    stderr,
    exitCode,
    text: () => stdout.toString(),
    json: () => JSON.parse(stdout.toString()),
    bytes: () => stdout,
  }
}
