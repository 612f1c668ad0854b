import type { Action } from "../schema/permission.ts"
import { TackleError } from "../util/errors.ts"
import type { AuthHook } from "./auth.ts"

/**
 * A plugin's hooks, in the format that OpenCode's plugins use. Most hooks receive an input and an output, and change
 * the output in place. The engine calls them through `PluginHost`.
 */
export interface Hooks {
  /**
   * Called once before the engine starts. A plugin can change the keys `model`, `default_agent`, `agent`, `provider`
   * and `mcp`.
   */
  config?: (config: Record<string, unknown>) => unknown
  /** Called for every event that has an equivalent in OpenCode. The engine does not wait for it. */
  event?: (input: { event: { type: string; properties: Record<string, unknown> } }) => unknown
  /** The sign-in methods for a provider. */
  auth?: AuthHook
  /** Tools, keyed by id. */
  tool?: Record<string, unknown>
  /** Called before a call is validated and checked for permission. A hook that throws blocks the call. */
  "tool.execute.before"?: (input: CallInput, output: BeforeOutput) => unknown
  /** Called after each call with valid arguments that no plugin blocked, including rejected and failed calls. */
  "tool.execute.after"?: (input: AfterInput, output: AfterOutput) => unknown
  "tool.definition"?: (input: { toolID: string }, output: DefinitionOutput) => unknown
  "permission.ask"?: (input: PermissionInput, output: { status: Action }) => unknown
  /** Called before the user's message is stored. */
  "chat.message"?: (input: MessageInput, output: MessageOutput) => unknown
  /** Called before each request in a step, including retries. Not called for summaries and MCP sampling. */
  "chat.params"?: (input: ChatInput, output: ParamsOutput) => unknown
  "chat.headers"?: (input: ChatInput, output: { headers: Record<string, string> }) => unknown
  /**
   * Called before each request in a step with the messages that the model will receive. OpenCode's name:
   * `experimental.chat.messages.transform`.
   */
  "chat.messages.transform"?: (input: object, output: { messages: TransformedMessage[] }) => unknown
  /**
   * Called before each request in a step with the system prompt. OpenCode's name: `experimental.chat.system.transform`.
   */
  "chat.system.transform"?: (input: SystemInput, output: { system: string[] }) => unknown
  /** Called before completed text from the model is stored. OpenCode's name: `experimental.text.complete`. */
  "text.complete"?: (input: TextInput, output: { text: string }) => unknown
  "shell.env"?: (input: ShellInput, output: { env: Record<string, string> }) => unknown
  /**
   * Called before the model is asked for a summary of the session. OpenCode's name: `experimental.session.compacting`.
   */
  "session.compacting"?: (input: { sessionID: string }, output: CompactingOutput) => unknown
  /** Called when the engine closes. */
  dispose?: () => unknown
}

/** A tool call. `tool` is the tool id. */
export interface CallInput {
  tool: string
  sessionID: string
  callID: string
}

/**
 * The call's arguments: an object, which may be invalid for the tool. If a plugin changes the arguments, the changed
 * arguments are validated, checked against the rules and shown to the user.
 */
export interface BeforeOutput {
  args: Record<string, unknown>
}

/** A finished call. `status` does not exist in OpenCode, which has no hook after a failed call. */
export interface AfterInput extends CallInput {
  args: Record<string, unknown>
  status: "completed" | "error"
}

/** The result of a call. For a failed call, `output` is the error message. */
export interface AfterOutput {
  title: string
  output: string
  metadata: Record<string, unknown>
}

/** A tool definition. `parameters` is a JSON Schema. */
export interface DefinitionOutput {
  description: string
  parameters: Record<string, unknown>
}

/**
 * A permission request. `type` is the permission and `pattern` contains the requested patterns. `id` is the call id, or
 * the session id without a call. `time.created` is in milliseconds since the epoch.
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

/** A model, identified by its provider and model ids. */
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

/** The user's message. `parts` contains texts and files. Changes to `message` have no effect. */
export interface MessageOutput {
  message: Record<string, unknown>
  parts: Record<string, unknown>[]
}

/**
 * The next model request. `message` is the user's stored message. `provider` contains the provider id but no options.
 */
export interface ChatInput {
  sessionID: string
  agent: string
  model: Record<string, unknown>
  provider: Record<string, unknown>
  message: Record<string, unknown>
}

/**
 * Parameters for a model request. If a parameter is undefined, the recommended value applies, or the provider's default
 * if no value is recommended. `options` are passed to the provider's package.
 */
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

/** The session and the model for the next step. */
export interface SystemInput {
  sessionID: string
  model: Record<string, unknown>
}

/** The ids of the session, the message and the part that contain the text. */
export interface TextInput {
  sessionID: string
  messageID: string
  partID: string
}

/** A command that is about to run: its absolute working directory, and the call that runs it. */
export interface ShellInput {
  cwd: string
  sessionID: string
  callID: string | undefined
}

/** The prompt for a summary. `prompt` replaces the default prompt. `context` is added to the prompt. */
export interface CompactingOutput {
  context: string[]
  prompt?: string | undefined
}

/** The hooks that have an output, with their input and output types. */
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

/** Name of a hook that has an output, without OpenCode's `experimental.` prefix. */
export type OutputHook = keyof OutputHooks

/** Thrown when a plugin's `tool.execute.before` hook blocks a call. The model receives the message. */
export class PluginBlockedError extends TackleError {
  readonly plugin: string
  constructor(plugin: string, reason: string, cause?: unknown) {
    super(`The plugin ${plugin} blocked this call: ${reason}`, {
      code: "plugin.blocked",
      recoverable: true,
      cause,
    })
    this.plugin = plugin
  }
}

/** Reports to the user that a plugin failed and was disabled. */
export class PluginFailedError extends TackleError {
  constructor(plugin: string, hook: string, reason: string, cause?: unknown) {
    super(
      `the plugin ${plugin} failed in its hook ${hook}: ${reason}. Its hooks are disabled until the next start. Its tools remain available.`,
      { code: "plugin.failed", recoverable: false, cause },
    )
  }
}
