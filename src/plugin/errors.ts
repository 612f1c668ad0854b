import { TackleError } from "../util/errors.ts"

/** A plugin's `tool.execute.before` hook blocked a call. The message is shown to the model. */
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

/** A plugin failed and was disabled. The message is shown to the user. */
export class PluginFailedError extends TackleError {
  constructor(plugin: string, hook: string, reason: string, cause?: unknown) {
    super(
      `the plugin ${plugin} failed in ${hook}: ${reason}. Its hooks are disabled until the next start. Its tools remain available.`,
      { code: "plugin.failed", recoverable: false, cause },
    )
  }
}
