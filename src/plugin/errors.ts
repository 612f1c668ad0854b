import { TackleError } from "../util/errors.ts"

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
      `the plugin ${plugin} failed in ${hook}: ${reason}. Its hooks are disabled until the next start. Its tools remain available.`,
      { code: "plugin.failed", recoverable: false, cause },
    )
  }
}
