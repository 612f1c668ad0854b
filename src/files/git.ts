import { execFile } from "node:child_process"
import { hardenedGitEnvironment } from "../permission/shell/git-repository.ts"
import { errorMessage } from "../util/errors.ts"

/** Options of {@link runGit}. */
export interface GitOptions {
  cwd: string
  environment: Readonly<Record<string, string | undefined>>
  /**
   * Whether git may connect to remotes over HTTP and SSH. In this case, git uses the user's configuration, such as
   * credentials. Other transports are not available, because `ext` and `file` can run programs of a repository.
   */
  connects?: boolean
  signal?: AbortSignal
}

/** Maximum size of the output in bytes. */
const maxOutput = 64 * 1024 * 1024

/**
 * Runs git without a shell and returns its output. Disables the repository's hooks, monitors and submodules and, unless
 * `connects` is true, its pagers and signing programs. If git fails, rejects with the error output of git.
 */
export function runGit(
  args: readonly string[],
  { cwd, environment, connects = false, signal }: GitOptions,
): Promise<string> {
  const hardened = hardenedGitEnvironment()
  const own = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("GIT_")))
  const connecting = {
    GIT_TERMINAL_PROMPT: "0",
    GIT_ALLOW_PROTOCOL: "http:https:ssh",
    GIT_TEMPLATE_DIR: "",
    ...configured({
      "core.fsmonitor": "false",
      "core.hooksPath": "/dev/null",
      "fetch.recurseSubmodules": "false",
      "gc.auto": "0",
      // Ends a connection on which nothing arrives for a minute.
      "http.lowSpeedLimit": "1",
      "http.lowSpeedTime": "60",
      "maintenance.auto": "false",
      "submodule.recurse": "false",
    }),
  }
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const options = {
    cwd,
    env: { ...own, ...(connects ? connecting : hardened) },
    maxBuffer: maxOutput,
    signal,
  }
  execFile("git", [...args], options, (error, stdout, stderr) => {
    if (!error) resolve(stdout)
    else reject(new Error(stderr.trim() || errorMessage(error), { cause: error }))
  })
  return promise
}

/** Returns the variables with which git reads settings from its environment. */
function configured(settings: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(settings).flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ])
  return { GIT_CONFIG_COUNT: String(entries.length / 2), ...Object.fromEntries(entries) }
}
