import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Todo } from "../schema/todo.ts"
import type { AskRequest, Job, MetadataUpdate, ToolContext } from "../tool/context.ts"
import { createFileLedger } from "../tool/ledger.ts"
import { createSpillOpener } from "../tool/spill.ts"

/** A context that notes what a tool asks and reports. */
export interface FakeContext extends ToolContext {
  asked: AskRequest[]
  reported: MetadataUpdate[]
}

/**
 * A whole {@link ToolContext} without an engine behind it: every ask is allowed unless `onAsk` throws, to-dos and jobs
 * live in memory, spill files go to a temporary directory. For unit tests of tools.
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
  return {
    sessionID: "ses_test",
    messageID: "msg_test",
    callID: "call_test",
    agent: "build",
    abort: new AbortController().signal,
    worktree: options.directory,
    files: createFileLedger(),
    spill: createSpillOpener({ directory: mkdtempSync(join(tmpdir(), "tackle-spill-")), name: "test" }),
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
  }
}
