import { hardenedGitEnvironment } from "./git-environment.ts"
import { planCommand } from "./plan.ts"
import { proveReadOnly } from "./read-only.ts"

/**
 * What a command gets beside the usual variables. A text that only reads, and reads through git, may have been allowed
 * on that proof alone: it runs in the environment that the proof rests on. Everything else gets nothing.
 */
export async function commandEnvironment(text: string): Promise<Record<string, string>> {
  // Most commands name no git; they need not be parsed a second time.
  if (!text.includes("git")) return {}
  const plan = await planCommand(text)
  if (plan.opaque !== undefined) return {}
  const proofs = plan.commands.map(proveReadOnly)
  return proofs.every(Boolean) && proofs.some((proof) => proof?.git) ? hardenedGitEnvironment() : {}
}
