import { randomUUID } from "node:crypto"
import { rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createFileTracker } from "../files/file-tracker.ts"
import type { Todo } from "../schema/todo.ts"
import type { AskRequest, Job, MetadataUpdate, ToolContext } from "../tool/context.ts"
import { createSpillOpener } from "../tool/spill.ts"

/** A tool context that records a tool's requests and reports. */
export interface FakeContext extends ToolContext, AsyncDisposable {
  asked: AskRequest[]
  reported: MetadataUpdate[]
}

/**
 * Creates a complete {@link ToolContext} without an engine, for unit tests of tools. Allows every request unless
 * `onAsk` throws. Stores to-dos and jobs in memory. Writes full outputs to a temporary directory, which is removed when
 * the context is disposed (`await using ctx = fakeContext(…)`).
 */
export function fakeContext(
  options: Partial<ToolContext> & {
    directory: string
    onAsk?: (request: AskRequest) => void | Promise<void>
  },
): FakeContext {
  const { onAsk, ...overrides } = options
  const asked: AskRequest[] = []
  const reported: MetadataUpdate[] = []
  const jobs = new Map<string, Job>()
  let todos: Todo[] = []
  const spillDirectory = join(tmpdir(), `tackle-spill-${randomUUID()}`)
  return {
    sessionID: "ses_test",
    messageID: "msg_test",
    callID: "call_test",
    agent: "build",
    abort: new AbortController().signal,
    worktree: options.directory,
    files: createFileTracker(),
    spill: createSpillOpener({ directory: spillDirectory, name: "test" }),
    todo: {
      read: async () => todos,
      write: async (next) => {
        todos = next
      },
    },
    jobs: {
      list: () => [...jobs.values()].map((job) => job.info()),
      get: (id) => jobs.get(id),
      add: (job) => {
        jobs.set(job.info().id, job)
      },
    },
    ...overrides,
    asked,
    reported,
    async ask(request) {
      asked.push(request)
      await onAsk?.(request)
    },
    async metadata(update) {
      reported.push(update)
    },
    [Symbol.asyncDispose]: () => rm(spillDirectory, { recursive: true, force: true }),
  }
}
