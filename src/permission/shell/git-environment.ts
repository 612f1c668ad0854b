import { planCommand } from "./plan.ts"
import { needsHardenedGit } from "./read-only.ts"

/**
 * Settings that stop git from running programs named in a repository's configuration: no file system monitor, hooks,
 * external diff, signing program, pager, editor, prompt or transport, no configuration outside the repository, no
 * locks and no submodules. Filter and text conversion drivers have arbitrary names and cannot be disabled here: see
 * `repositoryProblem`.
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
 * Returns additional environment variables for a command. A read-only text with git may have been allowed by that
 * proof alone, so it runs in the hardened environment. Other texts receive none, so that hooks, transports and the
 * user's configuration work.
 */
export async function commandEnvironment(text: string): Promise<Record<string, string>> {
  // Avoids a second parse if the text does not contain `git`. Quotes may split the name.
  if (!text.includes("git") && !/["'\\]/.test(text)) return {}
  return needsHardenedGit(await planCommand(text)) ? hardenedGitEnvironment() : {}
}
