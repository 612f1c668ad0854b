import { planCommand } from "./plan.ts"
import { needsHardenedGit } from "./read-only.ts"

/**
 * Returns variables that stop git from running programs that the configuration of a repository names: file system
 * monitors, hooks, external diffs, signing programs, pagers, editors, prompts and transports. These variables also
 * disable configuration outside the repository, optional locks and submodules. Filter and text conversion drivers have
 * arbitrary names and cannot be disabled here: see `repositoryProblem`.
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
 * Returns additional environment variables for a command. A text that contains git and is proved to only read may have
 * been allowed only because of that proof, so it runs in the hardened environment. Other texts get no variables, so
 * that hooks, transports and the user's configuration work.
 */
export async function commandEnvironment(text: string): Promise<Record<string, string>> {
  // Avoids parsing the text again if it does not contain `git`. Quotes may split the name.
  if (!text.includes("git") && !/["'\\]/.test(text)) return {}
  return needsHardenedGit(await planCommand(text)) ? hardenedGitEnvironment() : {}
}
