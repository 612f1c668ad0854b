import type { Agent } from "../agent/agent.ts"
import type { RecordedResults } from "../call/call.ts"
import type { Bus } from "../event/bus.ts"
import type { ContentStore } from "../files/content-store.ts"
import type { FileCommits } from "../files/file-tracker.ts"
import type { ChangeCapability, TurnRecord } from "../files/turn-changes.ts"
import type { FormatterService } from "../formatter/service.ts"
import type { Model } from "../model/model.ts"
import type { RetryLimits } from "../model/retry.ts"
import type { StreamLimits } from "../model/stream.ts"
import type { Permission } from "../permission/permission.ts"
import type { Policy } from "../permission/policy.ts"
import type { Scope } from "../permission/request.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { Registry } from "../registry/registry.ts"
import type { Session } from "../schema/session.ts"
import type { LeaseHolder, Store } from "../store/store.ts"
import type {
  FoundInstructions,
  JobCapability,
  LanguageCapability,
  SandboxCapability,
} from "../tool/context.ts"
import type { SecretMask } from "../tool/secrets.ts"
import type { OutputLimits } from "../tool/tool.ts"
import type { MentionedFiles } from "./attach-mentions.ts"
import type { Lineage } from "./lineage.ts"
import type { Questions } from "./questions.ts"
import type { SubagentServices } from "./subagent.ts"

/** What sessions are built on. Bound once, by the runtime. */
export interface SessionServices {
  /** Throws `EngineClosedError` once the engine was closed. */
  assertOpen(): void
  store: Store
  bus: Bus
  /** Under this name the engine works on sessions. */
  holder: LeaseHolder
  /** Resolves when what runs that were killed left is ended and removed: it may be about the files of those that begin. */
  cleared: Promise<void>
  registry: Registry
  /** Bytes of definitions beyond which tools are found by `tool_search`. Absent: all are offered. */
  toolBytes?: number
  permission: Permission
  jobs: JobCapability
  /** With which all sessions write files. */
  fileCommits: FileCommits
  /** Absent where language servers are switched off. */
  lsp?: LanguageCapability
  /** Absent where no formatter is switched on. */
  formatter?: FormatterService
  /** The sandbox for the commands of an agent. */
  sandbox(agent: Agent, scope: Scope): SandboxCapability
  policy(session: Session, agent: Agent): Policy
  /** Brings the grants and sessions that the policy reads up to date with the store. */
  loadPolicy(session: Session): Promise<void>
  lineage: Lineage
  subagents: SubagentServices
  questions: Questions
  /** Tools that the agent cannot have in this session whatever the rules say, with the reason. */
  lacking(agent: Agent, session: Session): Readonly<Record<string, string>>
  /** Where the session keeps its plan. Undefined where there is no plan mode for it. */
  planFile(session: Session): string | undefined
  /** Directories of the skills that the agent may load. */
  skillDirectories(agent: Agent): string[]
  agent(name: string): Agent
  /** Agents and skills follow their files: `follow` brings them up to date, and is cheap where nothing changed. */
  definitions: { follow(): Promise<void>; changedLately(): boolean }
  model(session: Session, agent: Agent): Promise<Model>
  instructions: readonly string[]
  /** Texts that hold for a file (links followed) beside these, the nearest last. */
  instructionsNear?(file: string): Promise<FoundInstructions[]>
  /** `PATH` of the commands that run. */
  searchPath?: string
  /** What files were before they were changed. */
  contents: ContentStore
  /** Notes what a turn does to files, and gives each state of the record to `save`. */
  watchChanges(save: (record: TurnRecord) => Promise<void>): ChangeCapability
  /** The turns under way, by the session at the top: what subagents change is part of them. */
  turns: Map<string, ChangeCapability>
  /** `<data>/truncate`: spill files lie below it, by session. */
  spillRoot: string
  spillBytes?: number
  mask?: SecretMask
  outputLimits?: Partial<OutputLimits>
  /** Gives the recorded ends of calls, in a run that is played back. */
  recorded?: RecordedResults
  /** Stands before the reading of what prompts mention. */
  attach?: (find: () => Promise<MentionedFiles>) => Promise<MentionedFiles>
  streamLimits: StreamLimits
  retry: RetryLimits
  /** Absent where there is no plugin. */
  plugins?: PluginHost
  onEscape(tool: string, error: unknown): void
}
