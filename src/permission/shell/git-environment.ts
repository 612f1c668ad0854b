import { planCommand } from "./plan.ts"
import { needsHardenedGit } from "./read-only.ts"

/**
 * Settings with which git only reads, so that the configuration of a repository cannot make it run anything: no
 * file system monitor, hooks, external diff, signing program, pager, editor, prompt or transport, no configuration
 * but that of the repository, no locks and no submodules. Drivers of filters and text conversion have names of
 * their own and cannot be switched off here: see `repositoryProblem`.
 */
export function hardenedGitEnvironment(): Record<string, string> {
  const environment: Record<string, string> = {
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ALLOW_PROTOCOL: "",
    GIT_NO_LAZY_FETCH: "1",
    GIT_PAGER: "cat",
    GIT_EDITOR: "false",
    GIT_ASKPASS: "false",
    GIT_CONFIG_COUNT: String(settings.length),
  }
  for (const [index, [key, value]] of settings.entries()) {
    environment[`GIT_CONFIG_KEY_${index}`] = key
    environment[`GIT_CONFIG_VALUE_${index}`] = value
  }
  return environment
}

const settings: readonly (readonly [string, string])[] = [
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["core.pager", "cat"],
  ["core.sshCommand", "false"],
  ["core.askPass", "false"],
  ["core.attributesFile", "/dev/null"],
  ["credential.helper", ""],
  ["diff.ignoreSubmodules", "all"],
  ["gpg.program", "false"],
  ["gpg.ssh.program", "false"],
  ["gpg.x509.program", "false"],
  ["log.showSignature", "false"],
  ["protocol.allow", "never"],
  ["safe.bareRepository", "explicit"],
  ["status.submoduleSummary", "false"],
]

/**
 * Returns the variables that a command gets in addition to the usual ones. A text that only reads, with git, may
 * have been allowed on that proof alone, so it runs in the environment that the proof needs. Any other text gets
 * none, so that hooks, transports and the configuration of the user work.
 */
export async function commandEnvironment(text: string): Promise<Record<string, string>> {
  // Most commands do not contain `git` and need no second parse. Quotes may split the name.
  if (!text.includes("git") && !/["'\\]/.test(text)) return {}
  return needsHardenedGit(await planCommand(text)) ? hardenedGitEnvironment() : {}
}
