import { TackleError } from "../util/errors.ts"

/** A plugin's `tool.execute.before` blocked a call. The message is for the model. */
export class PluginBlockedError extends TackleError {
  readonly plugin: string
  constructor(plugin: string, reason: string, cause?: unknown) {
    super(`This call was not run: the plugin ${plugin} blocked it: ${reason}`, {
      code: "plugin.blocked",
      recoverable: true,
      cause,
    })
    this.plugin = plugin
  }
}

/** A plugin failed where it must not: nothing of it is called any more. For people. */
export class PluginFailedError extends TackleError {
  constructor(plugin: string, moment: string, reason: string, cause?: unknown) {
    super(
      `the plugin ${plugin} failed in ${moment}: ${reason}. None of its hooks is called any more until the next start; its tools stay.`,
      { code: "plugin.failed", recoverable: false, cause },
    )
  }
}
