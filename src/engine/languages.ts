import { createLanguageService, type LanguageService } from "../lsp/service.ts"
import type { Features } from "../tools/availability.ts"
import { realPath } from "../util/paths.ts"
import type { ProcessJournal } from "../util/process-journal.ts"
import type { TackleOptions } from "./options.ts"

/** The language servers of the work tree, of which none runs yet. Undefined where the feature is switched off. */
export function openLanguages(
  { lsp, trusted = false }: TackleOptions,
  {
    worktree,
    features,
    environment,
    record,
  }: {
    worktree: string
    features: Features
    environment: Readonly<Record<string, string | undefined>>
    record: ProcessJournal["add"]
  },
): LanguageService | undefined {
  if (!features.experimental.has("lsp_tool")) return undefined
  return createLanguageService({
    worktree: realPath(worktree),
    trusted,
    environment,
    record,
    ...(lsp === undefined ? {} : { config: lsp }),
  })
}
