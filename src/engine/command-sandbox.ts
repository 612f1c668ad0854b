import { tmpdir } from "node:os"
import type { Agent } from "../agent/agent.ts"
import { createSandboxFor } from "../call/sandbox.ts"
import type { Scope } from "../permission/request.ts"
import type { PlaceholderBook } from "../sandbox/placeholder-book.ts"
import { openSandbox } from "../sandbox/sandbox.ts"
import type { SandboxCapability } from "../tool/context.ts"
import { homeDirectory } from "../util/paths.ts"
import { dataPlaces, shownPlaces } from "./data-directory.ts"
import type { TackleOptions } from "./options.ts"
import type { EnginePlace } from "./place.ts"

/** The sandbox for the commands of agents. */
export interface CommandSandbox {
  /** False: there is none on this machine, or it is switched off. */
  readonly present: boolean
  /** Where there is none at all, an agent that needs one has no commands but those its configuration lifts the ban on. */
  of(agent: Agent, scope: Scope): SandboxCapability
  close(): Promise<void>
}

/** As the options say. Starts nothing before the first command. */
export function openCommandSandbox(
  { sandbox: mode = "auto", passEnvironment = [], configFiles = [], configDirectories = [] }: TackleOptions,
  { environment, worktree, dataDirectory }: Pick<EnginePlace, "environment" | "worktree" | "dataDirectory">,
  placeholders: PlaceholderBook,
): CommandSandbox {
  const sandbox = openSandbox({
    mode,
    platform: process.platform,
    architecture: process.arch,
    searchPath: environment.PATH ?? "",
    worktree,
    passEnvironment,
    placeholders,
  })
  const sandboxFor = createSandboxFor({
    sandbox,
    home: homeDirectory(),
    temporary: [...new Set(["/tmp", environment.TMPDIR || tmpdir()])],
    guarded: configFiles,
    configDirectories,
    secret: [dataDirectory],
    shown: shownPlaces(dataPlaces(dataDirectory)),
  })
  return {
    present: sandbox.present,
    of: (agent, scope) => sandboxFor(scope, { required: agent.sandbox === "require" && sandbox.present }),
    close: () => sandbox.close(),
  }
}
