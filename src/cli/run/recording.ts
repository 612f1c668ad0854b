import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from "node:fs"
import { shownName } from "../../config/shown-name.ts"
import type { TackleOptions } from "../../engine/options.ts"
import type { TackleEvent } from "../../event/events.ts"
import { type ProviderConfig, parseModelName } from "../../model/model.ts"
import { shippedPackages } from "../../model/provider-table.ts"
import {
  fromRecorded,
  type Places,
  parseRecording,
  type RecordingLine,
  type RunLine,
  toRecorded,
  withMarks,
  withPlaces,
} from "../../model/recording/format.ts"
import { recordFetch } from "../../model/recording/record-fetch.ts"
import { startReplay } from "../../model/recording/replay.ts"
import { describedPool, recordedPool } from "../../registry/recorded-pool.ts"
import type { PromptFile } from "../../schema/input.ts"
import { fileReason, UsageError } from "../../util/errors.ts"
import { localDay } from "../../util/time.ts"
import { counted } from "../../util/words.ts"
import { warn } from "../process/notice.ts"
import type { Workspace } from "../workspace/workspace.ts"
import type { RunTask } from "./task.ts"

/** A recording of a run in progress, for `--record`. */
export interface StartedRecording {
  /** Engine options that record requests and results. */
  options: Pick<TackleOptions, "aroundFetch" | "attach" | "openMcp">
  /** Records the task. Must be called before the run starts. */
  begin(run: RunTask & Pick<RunLine, "questions" | "command"> & { files: readonly PromptFile[] }): void
  /** Records the results of calls. Subscribe this method to the engine's events. */
  take(event: TackleEvent): void
  end(): void
}

/**
 * Starts a recording. Overwrites an existing file and makes it readable only by the current user. Throws `UsageError`
 * if the file cannot be written.
 */
export function startRecording(file: string, workspace: Workspace): StartedRecording {
  const { provider: providers = {} } = workspace.config.config
  const places = placesOf(workspace)
  const descriptor = openForWriting(file)

  /** Lines to write after the line that describes the run. */
  let early: RecordingLine[] | undefined = []

  function write(line: RecordingLine): void {
    if (early) early.push(line)
    else writeSync(descriptor, `${withMarks(JSON.stringify(workspace.mask.value(line)), places)}\n`)
  }

  return {
    options: {
      aroundFetch: (ask) => recordFetch(ask, write),
      async attach(find) {
        const mentioned = await find()
        const { files, notes, refused } = mentioned
        if (files.length + notes.length > 0)
          write({ type: "mentions", files: files.map(toRecorded), notes, refused })
        return mentioned
      },
      async openMcp(open) {
        const pool = await open()
        return pool && describedPool(pool, (tools) => write({ type: "mcp", tools }))
      },
    },
    begin({ files, ...run }) {
      const before = early ?? []
      early = undefined
      write({
        type: "run",
        version: 1,
        ...run,
        files: files.map(toRecorded),
        providers: withoutKeys(providers, run.model),
      })
      before.forEach(write)
    },
    take(event) {
      if (event.type !== "part.updated" || event.part.type !== "tool") return
      const { tool, state } = event.part
      if (state.status === "completed" || state.status === "error") write({ type: "tool", tool, state })
    },
    end: () => closeSync(descriptor),
  }
}

/** A replay of a recorded run, for `--replay`. */
export interface StartedReplay {
  task: RunTask
  options: Pick<TackleOptions, "aroundFetch" | "recorded" | "providers" | "questions" | "attach" | "openMcp">
  /** Reports the result. Returns true if the run matched the recording. */
  end(): boolean
}

/**
 * Opens a recording. Throws `UsageError` if the file cannot be read, is not a recording or uses an unknown provider
 * package.
 */
export function openReplay(file: string, workspace: Workspace): StartedReplay {
  const recording = parseRecording(withPlaces(readText(file), placesOf(workspace)), file)
  const { run, exchanges, tools, mentions = { files: [], notes: [], refused: [] }, mcp } = recording
  checkPackages(run.providers, workspace.config.config.provider ?? {})
  const replay = startReplay(recording)
  return {
    task: taskOf(run),
    options: {
      aroundFetch: () => replay.fetch,
      recorded: replay.result,
      providers: run.providers,
      questions: run.questions,
      attach: async () => ({ ...mentions, files: mentions.files.map(fromRecorded) }),
      openMcp: async () => (mcp.length === 0 ? undefined : recordedPool(replay.offered)),
    },
    end() {
      const difference = replay.end()
      const counts = `${counted(exchanges.length, "request")}, ${counted(tools.length, "call")}`
      if (difference === undefined) warn(`the replay matches the recording: ${counts}.`)
      else warn(`the replay differs from the recording. ${difference}`)
      return difference === undefined
    },
  }
}

function taskOf(run: RunLine): RunTask {
  const { prompt, model, named, agent, allow, deny, limits, outputSchema, command } = run
  const files = run.files.map(fromRecorded)
  return { prompt, model, named, agent, allow, deny, limits, outputSchema, command, files }
}

function placesOf({ dataDirectory, directory, worktree, home }: Workspace): Places {
  return { data: dataDirectory, directory, worktree, home, today: localDay(Date.now()) }
}

/**
 * Returns only the provider settings that a replay needs. Includes the model's provider even if the config does not
 * define it.
 */
function withoutKeys(
  providers: Readonly<Record<string, ProviderConfig>>,
  model: string,
): RunLine["providers"] {
  const { providerID } = parseModelName(model)
  const all: Record<string, ProviderConfig> = { [providerID]: {}, ...providers }
  return Object.fromEntries(
    Object.entries(all).map(([id, { options, env: _, ...provider }]) => {
      const { baseURL } = options ?? {}
      return [id, { ...provider, ...(baseURL === undefined ? {} : { options: { baseURL } }) }]
    }),
  )
}

/**
 * Throws `UsageError` if the recording uses an unknown provider package, because a recording may come from an untrusted
 * source, and importing a package runs its code.
 */
function checkPackages(recorded: RunLine["providers"], own: Readonly<Record<string, ProviderConfig>>): void {
  const known = new Set(Object.values(own).map(({ npm }) => npm))
  for (const [id, { npm }] of Object.entries(recorded)) {
    if (npm === undefined || shippedPackages.has(npm) || known.has(npm)) continue
    throw new UsageError(
      `The recording uses the provider package ${shownName(npm)}, which is not part of Tackle. If you trust it, add it to your config as provider.${shownName(id)}.npm.`,
    )
  }
}

function openForWriting(file: string): number {
  let descriptor: number | undefined
  try {
    descriptor = openSync(file, constants.O_WRONLY | constants.O_CREAT, 0o600)
    // Other users may be able to read an existing file. The mode of a pipe or device is not changed.
    if (fstatSync(descriptor).isFile()) {
      fchmodSync(descriptor, 0o600)
      ftruncateSync(descriptor)
    }
    return descriptor
  } catch (error) {
    if (descriptor !== undefined) closeSync(descriptor)
    throw new UsageError(`Cannot write the recording ${file}: ${fileReason(error)}.`, error)
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8")
  } catch (error) {
    throw new UsageError(`Cannot read the recording ${file}: ${fileReason(error)}.`, error)
  }
}
