import { hardenedGitEnvironment } from "./git-environment.ts"
import { planCommand } from "./plan.ts"
import { needsHardenedGit } from "./read-only.ts"

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
