import * as z from "zod"
import { ToolState } from "./tool-state.ts"

const base = { id: z.string(), sessionID: z.string(), messageID: z.string() }
const span = z.object({ start: z.number(), end: z.number().optional() })
const providerMetadata = z.record(z.string(), z.unknown())

/** Text of the person or the model. `synthetic` marks what Tackle itself wrote. */
export const TextPart = z.object({
  ...base,
  type: z.literal("text"),
  text: z.string(),
  synthetic: z.boolean().optional(),
  time: span.optional(),
  metadata: providerMetadata.optional(),
})
export type TextPart = z.infer<typeof TextPart>

/** The model's thinking. `metadata` holds what the provider wants to see again, such as a signature. */
export const ReasoningPart = z.object({
  ...base,
  type: z.literal("reasoning"),
  text: z.string(),
  time: span,
  metadata: providerMetadata.optional(),
})
export type ReasoningPart = z.infer<typeof ReasoningPart>

/** A file given by the person. `url` is a data URL or an absolute path. */
export const FilePart = z.object({
  ...base,
  type: z.literal("file"),
  mime: z.string(),
  url: z.string(),
  filename: z.string().optional(),
})
export type FilePart = z.infer<typeof FilePart>

/** One tool call, from its first byte to its result. `tool` is the name as the model wrote it. */
export const ToolPart = z.object({
  ...base,
  type: z.literal("tool"),
  callID: z.string(),
  tool: z.string(),
  /** Of a call that another call made, such as `batch`: the id of that one, in whose result the model reads this. */
  parentCallID: z.string().optional(),
  state: ToolState,
  metadata: providerMetadata.optional(),
})
export type ToolPart = z.infer<typeof ToolPart>

/** The model was asked for one step. */
export const StepStartPart = z.object({ ...base, type: z.literal("step-start") })
export type StepStartPart = z.infer<typeof StepStartPart>

/** Tokens as the provider counts them. `input` is without cached ones, `output` without reasoning. */
export const Tokens = z.object({
  input: z.number(),
  output: z.number(),
  reasoning: z.number(),
  cache: z.object({ read: z.number(), write: z.number() }),
})
export type Tokens = z.infer<typeof Tokens>

/** Why a step ended. `tool-calls`: the model waits for results. `length`: it was cut off. */
export const FinishReason = z.enum(["stop", "length", "content-filter", "tool-calls", "error", "other"])
export type FinishReason = z.infer<typeof FinishReason>

/** The step ended. `cost` in US dollars by the prices of the config, 0 where there are none. */
export const StepFinishPart = z.object({
  ...base,
  type: z.literal("step-finish"),
  reason: FinishReason,
  tokens: Tokens,
  cost: z.number(),
})
export type StepFinishPart = z.infer<typeof StepFinishPart>

/** The provider failed and the step is tried again after `delayMs`. */
export const RetryPart = z.object({
  ...base,
  type: z.literal("retry"),
  attempt: z.number(),
  error: z.string(),
  delayMs: z.number(),
  time: z.object({ created: z.number() }),
})
export type RetryPart = z.infer<typeof RetryPart>

/** A regular file at some moment: the sha256 of its bytes in hex, and its permission bits where they are known. */
export const FileVersion = z.object({ hash: z.string(), mode: z.number().optional() })
export type FileVersion = z.infer<typeof FileVersion>

/** One file that a turn changed. No version: there was no file. `path` is absolute, with every link followed. */
export const FileChange = z.object({
  path: z.string(),
  before: FileVersion.optional(),
  after: FileVersion.optional(),
  /** Why the change cannot be undone. `mixed`: somebody else changed the file between two changes of the turn. */
  fixed: z.enum(["too-large", "mixed"]).optional(),
  /** The turn is undone but for this file, which stayed as it was: what was not undone is not done again. */
  left: z.boolean().optional(),
})
export type FileChange = z.infer<typeof FileChange>

/** The files that a turn changed, as part of the message that began it. */
export const PatchPart = z.object({
  ...base,
  type: z.literal("patch"),
  files: z.array(FileChange),
  /** What else the turn may have changed, in words: commands of which not all could be seen. */
  unseen: z.array(z.string()).optional(),
  /** The files were put back to what they were before the turn, but for those that were left. */
  undone: z.boolean().optional(),
})
export type PatchPart = z.infer<typeof PatchPart>

/** The state of the files before a turn. */
export const SnapshotPart = z.object({ ...base, type: z.literal("snapshot"), snapshot: z.string() })
export type SnapshotPart = z.infer<typeof SnapshotPart>

/** What a file's bytes were when the session last saw them: see `FileStamp` of `tool/context.ts`. */
export const SeenFile = z.object({
  path: z.string(),
  stamp: z.object({ size: z.number(), mtimeMs: z.number(), digest: z.string().optional() }),
})
export type SeenFile = z.infer<typeof SeenFile>

/**
 * From here on the model is given this message in place of all before it, but for the messages from `from` on. `auto`:
 * nobody asked for it. `tokens` and `cost` are those of the summary.
 */
export const CompactionPart = z.object({
  ...base,
  type: z.literal("compaction"),
  auto: z.boolean(),
  from: z.string().optional(),
  /** Names of tools that were found or called in what the summary stands for: see `session/deferred-tools.ts`. */
  tools: z.array(z.string()).optional(),
  /** The files that were read or written until then. Absent: they stand in the results of the calls alone. */
  seen: z.array(SeenFile).optional(),
  tokens: Tokens.optional(),
  cost: z.number().optional(),
})
export type CompactionPart = z.infer<typeof CompactionPart>

/** A subagent is to do this. */
export const SubtaskPart = z.object({
  ...base,
  type: z.literal("subtask"),
  prompt: z.string(),
  description: z.string(),
  agent: z.string(),
})
export type SubtaskPart = z.infer<typeof SubtaskPart>

/** Everything a message can consist of: one schema for the store, the events and every client. */
export const Part = z.discriminatedUnion("type", [
  TextPart,
  ReasoningPart,
  FilePart,
  ToolPart,
  StepStartPart,
  StepFinishPart,
  RetryPart,
  PatchPart,
  SnapshotPart,
  CompactionPart,
  SubtaskPart,
])
export type Part = z.infer<typeof Part>
