import type { Action } from "../schema/permission.ts"
import type { AuthHook } from "./auth.ts"

/**
 * What a plugin gives back: functions by the name of their moment, in the shape that OpenCode's plugins have. Each gets
 * an input, which says what it is about, and an output, which it changes in place.
 */
export interface Hooks {
  /**
   * Once, before the engine is made. The config as it stands: of its keys `model`, `default_agent`, `agent`, `provider`
   * and `mcp` may be changed.
   */
  config?: (config: Record<string, unknown>) => unknown
  /** Every event, after it happened. Nobody waits for it. */
  event?: (input: { event: { type: string; properties: Record<string, unknown> } }) => unknown
  /** How to sign in to a provider. */
  auth?: AuthHook
  /** Own tools by their id. */
  tool?: Record<string, unknown>
  /** Before a call's permission is looked at. Throws to block it. */
  "tool.execute.before"?: (input: CallInput, output: BeforeOutput) => unknown
  /** After a call that was begun, however it ended. */
  "tool.execute.after"?: (input: AfterInput, output: AfterOutput) => unknown
  "tool.definition"?: (input: { toolID: string }, output: DefinitionOutput) => unknown
  "permission.ask"?: (input: PermissionInput, output: { status: Action }) => unknown
  /** When the person's message is there and not yet stored. */
  "chat.message"?: (input: MessageInput, output: MessageOutput) => unknown
  /** Before each request to a model. */
  "chat.params"?: (input: ChatInput, output: ParamsOutput) => unknown
  "chat.headers"?: (input: ChatInput, output: { headers: Record<string, string> }) => unknown
  /** Before each step: the conversation as the model is given it. `experimental.chat.messages.transform` is the same. */
  "chat.messages.transform"?: (input: object, output: { messages: TransformedMessage[] }) => unknown
  /** Before each step: what the model is told first. `experimental.chat.system.transform` is the same. */
  "chat.system.transform"?: (input: SystemInput, output: { system: string[] }) => unknown
  /** When a text of the model's is whole and not yet stored. `experimental.text.complete` is the same. */
  "text.complete"?: (input: TextInput, output: { text: string }) => unknown
  "shell.env"?: (input: ShellInput, output: { env: Record<string, string> }) => unknown
  /** Before the request for a summary. `experimental.session.compacting` is the same hook. */
  "session.compacting"?: (input: { sessionID: string }, output: CompactingOutput) => unknown
  /** When the engine closes. */
  dispose?: () => unknown
}

/** The call that a hook is about. `tool` is the tool's id, as it was found. */
export interface CallInput {
  tool: string
  sessionID: string
  callID: string
}

/** The arguments of the model. What a plugin makes of them is validated, asked about and shown in their place. */
export interface BeforeOutput {
  args: Record<string, unknown>
}

/** `status` is ours: OpenCode has no hook after a failure. */
export interface AfterInput extends CallInput {
  args: Record<string, unknown>
  status: "completed" | "error"
}

/** Of a failed call `output` is the text of the error. */
export interface AfterOutput {
  title: string
  output: string
  metadata: Record<string, unknown>
}

/** `parameters` is JSON Schema. */
export interface DefinitionOutput {
  description: string
  parameters: Record<string, unknown>
}

/**
 * What is asked leave for: `type` is the permission, `pattern` what it is to cover, `id` that of the call, or of the
 * session where no call asks. `time` is when it was asked, in milliseconds since the epoch.
 */
export interface PermissionInput {
  id: string
  type: string
  pattern: string[]
  sessionID: string
  messageID: string
  callID?: string
  title: string
  metadata: Record<string, unknown>
  time: { created: number }
}

/** A model by its provider's id and its own. */
export interface ModelRef {
  providerID: string
  modelID: string
}

/** The person's message, and the agent and model that are to answer it. */
export interface MessageInput {
  sessionID: string
  agent: string
  model: ModelRef
  messageID: string
}

/** Parts are texts and files; what is done to `message` has no effect. */
export interface MessageOutput {
  message: Record<string, unknown>
  parts: Record<string, unknown>[]
}

/** The request that goes out next. `message` is the person's, as it is stored; of `provider` only its `id` is told. */
export interface ChatInput {
  sessionID: string
  agent: string
  model: Record<string, unknown>
  provider: Record<string, unknown>
  message: Record<string, unknown>
}

/** Undefined: what the provider does by itself. `options` are those of the provider's package. */
export interface ParamsOutput {
  temperature?: number | undefined
  topP?: number | undefined
  topK?: number | undefined
  maxOutputTokens?: number | undefined
  options: Record<string, unknown>
}

/** A message and its parts, as they are stored. */
export interface TransformedMessage {
  info: Record<string, unknown>
  parts: Record<string, unknown>[]
}

/** The session that takes its next step, and the model that is asked. */
export interface SystemInput {
  sessionID: string
  model: Record<string, unknown>
}

/** The part that holds the text. */
export interface TextInput {
  sessionID: string
  messageID: string
  partID: string
}

/** Where a command is about to run, as an absolute path, and the call that runs it. */
export interface ShellInput {
  cwd: string
  sessionID: string
  callID: string | undefined
}

/** `context` is added to the prompt for the summary; `prompt` stands in its place. */
export interface CompactingOutput {
  context: string[]
  prompt?: string | undefined
}

/** The hooks that change an output, with what they get. */
export interface OutputHooks {
  "tool.execute.before": { input: CallInput; output: BeforeOutput }
  "tool.execute.after": { input: AfterInput; output: AfterOutput }
  "tool.definition": { input: { toolID: string }; output: DefinitionOutput }
  "permission.ask": { input: PermissionInput; output: { status: Action } }
  "chat.message": { input: MessageInput; output: MessageOutput }
  "chat.params": { input: ChatInput; output: ParamsOutput }
  "chat.headers": { input: ChatInput; output: { headers: Record<string, string> } }
  "chat.messages.transform": { input: object; output: { messages: TransformedMessage[] } }
  "chat.system.transform": { input: SystemInput; output: { system: string[] } }
  "text.complete": { input: TextInput; output: { text: string } }
  "shell.env": { input: ShellInput; output: { env: Record<string, string> } }
  "session.compacting": { input: { sessionID: string }; output: CompactingOutput }
}

/** The name of one of these, without the `experimental.` that OpenCode puts before some. */
export type OutputHook = keyof OutputHooks
