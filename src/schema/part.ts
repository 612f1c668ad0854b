import * as z from "zod"
import { ToolState } from "./tool-state.ts"

const base = { id: z.string(), sessionID: z.string(), messageID: z.string() }
const span = z.object({ start: z.number(), end: z.number().optional() })
const providerMetadata = z.record(z.string(), z.unknown())

/** Text from the user or the model. `synthetic` marks text that Tackle wrote. */
export const TextPart = z.object({
  ...base,
  type: z.literal("text"),
  text: z.string(),
  synthetic: z.boolean().optional(),
  time: span.optional(),
  metadata: providerMetadata.optional(),
})
export type TextPart = z.infer<typeof TextPart>

/** The model's reasoning. `metadata` contains data that the provider expects back, such as a signature. */
export const ReasoningPart = z.object({
  ...base,
  type: z.literal("reasoning"),
  text: z.string(),
  time: span,
  metadata: providerMetadata.optional(),
})
export type ReasoningPart = z.infer<typeof ReasoningPart>

/** A file from the user. `url` is a data URL or an absolute path. */
export const FilePart = z.object({
  ...base,
  type: z.literal("file"),
  mime: z.string(),
  url: z.string(),
  filename: z.string().optional(),
})
export type FilePart = z.infer<typeof FilePart>

/** One tool call, from its first byte to its result. `tool` is the tool's name as the model wrote it. */
export const ToolPart = z.object({
  ...base,
  type: z.literal("tool"),
  callID: z.string(),
  tool: z.string(),
  /**
   * Id of the call that made this call, such as a `batch` call. The result of that call contains the result of this
   * call.
   */
  parentCallID: z.string().optional(),
  state: ToolState,
  metadata: providerMetadata.optional(),
})
export type ToolPart = z.infer<typeof ToolPart>

/** Start of a model step. */
export const StepStartPart = z.object({ ...base, type: z.literal("step-start") })
export type StepStartPart = z.infer<typeof StepStartPart>

/** Token counts from the provider. `input` excludes cached tokens, and `output` excludes reasoning tokens. */
export const Tokens = z.object({
  input: z.number(),
  output: z.number(),
  reasoning: z.number(),
  cache: z.object({ read: z.number(), write: z.number() }),
})
export type Tokens = z.infer<typeof Tokens>

/**
 * Reason why a step ended. `tool-calls` means that the model waits for results. `length` means that the output limit
 * was reached. `other` is a reason that Tackle does not know.
 */
export const FinishReason = z.enum(["stop", "length", "content-filter", "tool-calls", "error", "other"])
export type FinishReason = z.infer<typeof FinishReason>

/** End of a step. `cost` is in US dollars at the configured prices, or 0 without prices. */
export const StepFinishPart = z.object({
  ...base,
  type: z.literal("step-finish"),
  reason: FinishReason,
  tokens: Tokens,
  cost: z.number(),
})
export type StepFinishPart = z.infer<typeof StepFinishPart>

/**
 * A failed attempt. The step is retried after `delayMs`. If `delayMs` is 0, the answer was cut off or empty, and the
 * next step continues it. `error` then describes both.
 */
export const RetryPart = z.object({
  ...base,
  type: z.literal("retry"),
  attempt: z.number(),
  error: z.string(),
  delayMs: z.number(),
  time: z.object({ created: z.number() }),
})
export type RetryPart = z.infer<typeof RetryPart>

/**
 * The content of a file: the SHA-256 of its bytes in hex, and its permission bits if known. With `link`, the file is a
 * symbolic link, and the bytes are its target.
 */
export const FileVersion = z.object({
  hash: z.string(),
  mode: z.number().optional(),
  link: z.literal(true).optional(),
})
export type FileVersion = z.infer<typeof FileVersion>

/**
 * A file that a turn changed. `before` or `after` is absent if the file did not exist at that time. `path` is absolute,
 * with all links resolved.
 */
export const FileChange = z.object({
  path: z.string(),
  before: FileVersion.optional(),
  after: FileVersion.optional(),
  /**
   * Reason why the change cannot be undone. `too-large` means that the content was not kept, because the file was too
   * large or unreadable, or because the scan had reached its limit on total content. `mixed` means that another program
   * changed the file between two changes of the turn, and `unstored` that the old content could not be stored, for
   * example because the disk was full.
   */
  fixed: z.enum(["too-large", "mixed", "unstored"]).optional(),
  /** Topmost directory that the turn created for the file or removed with the file. */
  directory: z.string().optional(),
  /** Whether undo skipped this file. If so, redo skips it too. */
  left: z.boolean().optional(),
})
export type FileChange = z.infer<typeof FileChange>

/** The files that a turn changed. Belongs to the message that started the turn. */
export const PatchPart = z.object({
  ...base,
  type: z.literal("patch"),
  files: z.array(FileChange),
  /** Descriptions of changes that could not be tracked completely, such as a command and the reason. */
  unseen: z.array(z.string()).optional(),
  /** Whether the turn is undone, except for files with `left`. */
  undone: z.boolean().optional(),
})
export type PatchPart = z.infer<typeof PatchPart>

/** The version of a file that the session last read or wrote: see `FileStamp` in `files/file-tracker.ts`. */
export const SeenFile = z.object({
  path: z.string(),
  stamp: z.object({ size: z.number(), mtimeMs: z.number(), digest: z.string().optional() }),
})
export type SeenFile = z.infer<typeof SeenFile>

/**
 * A summary that replaces the earlier messages in the prompt, up to but not including the message `from`. If `from` is
 * absent, the summary replaces all messages before its own. `auto` is true unless the user requested the summary.
 * `tokens` and `cost` are those of the model step that wrote the summary.
 */
export const CompactionPart = z.object({
  ...base,
  type: z.literal("compaction"),
  auto: z.boolean(),
  from: z.string().optional(),
  /** Tools that were found or called in the summarized messages: see `session/deferred-tools.ts`. */
  tools: z.array(z.string()).optional(),
  /**
   * Files that the session read or wrote before the summary. If absent, these files are derived from the call results.
   */
  seen: z.array(SeenFile).optional(),
  tokens: Tokens.optional(),
  cost: z.number().optional(),
})
export type CompactionPart = z.infer<typeof CompactionPart>

/** A part of a message. The store, the events, and every client use this schema. */
export const Part = z.discriminatedUnion("type", [
  TextPart,
  ReasoningPart,
  FilePart,
  ToolPart,
  StepStartPart,
  StepFinishPart,
  RetryPart,
  PatchPart,
  CompactionPart,
])
export type Part = z.infer<typeof Part>
