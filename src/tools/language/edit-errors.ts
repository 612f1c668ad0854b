import type { ChangedPath } from "../../lsp/service.ts"
import type { ToolContext } from "../../tool/context.ts"

/** So many errors of an edit are told: enough to see what broke, as many as other agents tell. */
const maxErrors = 20

/**
 * What running language servers find wrong in files that were just changed, to be put at the end of the result: empty
 * where there is nothing to say. The change is done: this only waits, and not for long (`LanguageLimits.editMs`), and not at
 * all where no server for such a file runs.
 */
export async function errorsAfterEdit(
  ctx: Pick<ToolContext, "lsp" | "abort" | "directory">,
  changes: readonly ChangedPath[],
): Promise<string> {
  const heard = (await ctx.lsp?.changed(changes, ctx.abort)) ?? []
  if (heard.length === 0) return ""
  const { diagnosticFinding, isError } = await import("./finding.ts")
  const { placeLine } = await import("./render-findings.ts")
  const errors = heard.flatMap(({ path, diagnostics }) =>
    diagnostics.filter(isError).map((diagnostic) => diagnosticFinding(path, diagnostic)),
  )
  if (errors.length === 0) return ""
  const lines = errors.slice(0, maxErrors).map((error) => placeLine(error, ctx.directory))
  const more = errors.length > maxErrors ? [`(${errors.length - maxErrors} more)`] : []
  return `\n\nThe language server now reports:\n${[...lines, ...more].join("\n")}`
}
