import type { Action } from "../schema/permission.ts"
import type { AuthHook } from "./auth.ts"

/**
 * The hooks of a plugin, in the format of OpenCode's plugins. Each function receives an input and an output, which it
 * changes in place.
 */
export interface Hooks {
  /**
   * Called once before the engine starts. A plugin can change the keys `model`, `default_agent`, `agent`, `provider` and
   * `mcp`.
   */
  config?: (config: Record<string, unknown>) => unknown
  /** Called for every event. The engine does not wait for it. */
  event?: (input: { event: { type: string; properties: Record<string, unknown> } }) => unknown
  /** The sign-in methods of a provider. */
  auth?: AuthHook
  /** Tools by id. */
  tool?: Record<string, unknown>
  /** Called before the permission check of a call. Throws to block the call. */
  "tool.execute.before"?: (input: CallInput, output: BeforeOutput) => unknown
  /** Called after each call that was started, also after a failure. */
  "tool.execute.after"?: (input: AfterInput, output: AfterOutput) => unknown
  "tool.definition"?: (input: { toolID: string }, output: DefinitionOutput) => unknown
  "permission.ask"?: (input: PermissionInput, output: { status: Action }) => unknown
  /** Called before the user's message is stored. */
  "chat.message"?: (input: MessageInput, output: MessageOutput) => unknown
  /** Called before each request to a model. */
  "chat.params"?: (input: ChatInput, output: ParamsOutput) => unknown
  "chat.headers"?: (input: ChatInput, output: { headers: Record<string, string> }) => unknown
  /** Called before each step with the model's view of the conversation. Also `experimental.chat.messages.transform`. */
  "chat.messages.transform"?: (input: object, output: { messages: TransformedMessage[] }) => unknown
  /** Called before each step with the system prompt. Also `experimental.chat.system.transform`. */
  "chat.system.transform"?: (input: SystemInput, output: { system: string[] }) => unknown
  /** Called before a complete text of the model is stored. Also `experimental.text.complete`. */
  "text.complete"?: (input: TextInput, output: { text: string }) => unknown
  "shell.env"?: (input: ShellInput, output: { env: Record<string, string> }) => unknown
  /** Called before the request for a summary. Also `experimental.session.compacting`. */
  "session.compacting"?: (input: { sessionID: string }, output: CompactingOutput) => unknown
  /** Called when the engine closes. */
  dispose?: () => unknown
}

/** A call. `tool` is the tool's id. */
export interface CallInput {
  tool: string
  sessionID: string
  callID: string
}

/** The arguments. Changed arguments are validated, checked by the rules and shown instead of the model's. */
export interface BeforeOutput {
  args: Record<string, unknown>
}

/** OpenCode has no `status`, since it has no hook after a failure. */
export interface AfterInput extends CallInput {
  args: Record<string, unknown>
  status: "completed" | "error"
}

/** For a failed call, `output` is the error message. */
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
 * A permission request. `type` is the permission, `pattern` the requested patterns, `id` the id of the call or else of the
 * session, `time` the time of the request in milliseconds since the epoch.
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

/** A model by the ids of its provider and itself. */
export interface ModelRef {
  providerID: string
  modelID: string
}

/** The user's message, and the agent and model that answer it. */
export interface MessageInput {
  sessionID: string
  agent: string
  model: ModelRef
  messageID: string
}

/** Parts are texts and files. Changes of `message` have no effect. */
export interface MessageOutput {
  message: Record<string, unknown>
  parts: Record<string, unknown>[]
}

/** The next request. `message` is the user's stored message; `provider` has only its `id`. */
export interface ChatInput {
  sessionID: string
  agent: string
  model: Record<string, unknown>
  provider: Record<string, unknown>
  message: Record<string, unknown>
}

/** Undefined means the provider's default. `options` are for the provider's package. */
export interface ParamsOutput {
  temperature?: number | undefined
  topP?: number | undefined
  topK?: number | undefined
  maxOutputTokens?: number | undefined
  options: Record<string, unknown>
}

/** A stored message and its parts. */
export interface TransformedMessage {
  info: Record<string, unknown>
  parts: Record<string, unknown>[]
}

/** The session of the next step, and its model. */
export interface SystemInput {
  sessionID: string
  model: Record<string, unknown>
}

/** The part that contains the text. */
export interface TextInput {
  sessionID: string
  messageID: string
  partID: string
}

/** The absolute working directory of a command, and the call that runs it. */
export interface ShellInput {
  cwd: string
  sessionID: string
  callID: string | undefined
}

/** `context` is added to the prompt for the summary; `prompt` replaces it. */
export interface CompactingOutput {
  context: string[]
  prompt?: string | undefined
}

/** The hooks with an output, and their types. */
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

/** The name of such a hook, without OpenCode's `experimental.` prefix. */
export type OutputHook = keyof OutputHooks
