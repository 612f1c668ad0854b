import { createFileTracker } from "../files/file-tracker.ts"
import type { SessionServices } from "../session/services.ts"
import type { Grants } from "../store/grants.ts"
import type { JobTable } from "../tools/command/job-table.ts"
import { newId } from "../util/id.ts"
import { type Caller, type CallerOptions, createCaller, createTodoList, type Standing } from "./caller.ts"
import type { LoneCalls } from "./lone-calls.ts"

/** What callers take from the engine. */
export interface CallerSources {
  calls: LoneCalls
  defaultAgent: string
  grants: Pick<Grants, "forget">
  jobs: Pick<JobTable, "killOf">
  services: Pick<SessionServices, "agent" | "assertOpen" | "fileCommits">
}

/** A caller with a standing of their own. Throws `UsageError` for an unknown agent, and `EngineClosedError`. */
export function openCaller(
  { calls, defaultAgent, grants, jobs, services }: CallerSources,
  { agent: name = defaultAgent, tools: chosen, questions = true }: CallerOptions,
): Caller {
  services.assertOpen()
  const agent = services.agent(name)
  const standing: Standing = {
    id: newId("ses"),
    files: createFileTracker(services.fileCommits),
    todo: createTodoList(),
    questions,
    ...(chosen === undefined ? {} : { chosen: new Set(chosen) }),
  }
  return createCaller({
    standing,
    list: () => calls.list(agent, standing),
    call: (call) => calls.run({ ...call, agent: agent.name }, standing),
    async forget() {
      await jobs.killOf([standing.id])
      grants.forget(standing.id)
    },
  })
}
