import { planCommand } from "./plan.ts"
import { needsHardenedGit } from "./read-only.ts"

/**
 * Settings for a git that only reads, so that the configuration of the repository at hand cannot make it run anything:
 * no file system monitor, hooks, external diff, signing program, pager, editor, prompt or transport, no configuration
 * but the repository's own, no locks and no look into submodules. Drivers of filters and text conversion have names of
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
 * What a command gets beside the usual variables. A text that only reads, and reads through git, may have been allowed
 * on that proof alone: it runs in the environment that the proof rests on. Everything else gets nothing, so that hooks,
 * transports and the person's own configuration work where git was allowed for what it does.
 */
export async function commandEnvironment(text: string): Promise<Record<string, string>> {
  // Most commands name no git and need not be parsed a second time. Within quotes the name may be taken apart.
  if (!text.includes("git") && !/["'\\]/.test(text)) return {}
  return needsHardenedGit(await planCommand(text)) ? hardenedGitEnvironment() : {}
}
