import { type ExecFileOptions, execFile } from "node:child_process"
import { hardenedGitEnvironment } from "../permission/shell/git-repository.ts"
import { errorMessage } from "../util/errors.ts"

/** Options for {@link runGit}. */
export interface GitOptions {
  cwd: string
  environment: Readonly<Record<string, string | undefined>>
  /**
   * Whether git may connect to remotes over HTTP and SSH. If true, git uses the user's configuration, such as
   * credentials. Other transports are never available, because `ext` and `file` can run programs from a repository.
   */
  connects?: boolean
  signal?: AbortSignal
}

/** Maximum size of the output in bytes. */
const maxOutput = 64 * 1024 * 1024

/**
 * Runs git without a shell and returns its output. Disables the repository's hooks, monitors and submodules and, unless
 * `connects` is true, its pagers and signing programs. If git fails, rejects with git's error output.
 */
export async function runGit(
  args: readonly string[],
  { cwd, environment, connects = false, signal }: GitOptions,
): Promise<string> {
  const own = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("GIT_")))
  const run = (command: readonly string[], variables: Readonly<Record<string, string>>) =>
    execGit(command, { cwd, env: { ...own, ...variables }, maxBuffer: maxOutput, signal })
  if (!connects) return run(args, hardenedGitEnvironment())
  const connecting = {
    GIT_TERMINAL_PROMPT: "0",
    GIT_ALLOW_PROTOCOL: "http:https:ssh",
    GIT_TEMPLATE_DIR: "",
    ...configured({
      "core.fsmonitor": "false",
      "core.hooksPath": "/dev/null",
      "fetch.recurseSubmodules": "false",
      "gc.auto": "0",
      // Closes a connection on which nothing arrives for a minute.
      "http.lowSpeedLimit": "1",
      "http.lowSpeedTime": "60",
      "maintenance.auto": "false",
      "submodule.recurse": "false",
    }),
  }
  const configuredSsh = await run(["config", "--get", "core.sshCommand"], connecting).catch(() => "")
  return run(args, { ...connecting, GIT_SSH_COMMAND: limitedSsh(configuredSsh.trim()) })
}

/**
 * Adds options to the user's command if it starts OpenSSH. With these options, ssh never prompts, and exits if it
 * cannot connect within 30 seconds or if the server does not respond for a minute. Returns commands for other programs
 * unchanged.
 */
function limitedSsh(command: string): string {
  const ssh = command || "ssh"
  const options = "-o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
  return /^(?:\S*\/)?ssh(?:\s|$)/.test(ssh) ? `${ssh} ${options}` : ssh
}

function execGit(args: readonly string[], options: ExecFileOptions): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  execFile("git", [...args], { ...options, encoding: "utf8" }, (error, stdout, stderr) => {
    if (!error) resolve(stdout)
    else reject(new Error(stderr.trim() || errorMessage(error), { cause: error }))
  })
  return promise
}

/** Returns the environment variables that pass the settings to git. */
function configured(settings: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(settings).flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ])
  return { GIT_CONFIG_COUNT: String(entries.length / 2), ...Object.fromEntries(entries) }
}
