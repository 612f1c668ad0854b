import { basename } from "node:path"
import { fileChecks, pathExists } from "../path-checks.ts"
import { deniesOf, judge, type Policy } from "../policy.ts"
import { protectionOf } from "../protected-files.ts"
import type { Check } from "../request.ts"
import { unknownRead } from "./command-files.ts"
import { type CommandScope, coversAll, tableName } from "./command-forms.ts"
import { decodings } from "./crude-forms.ts"
import { kindOf, possibleFilesBelow } from "./directory-checks.ts"
import { absolutePaths, isPossibleName, looksLikePath } from "./named-paths.ts"
import { risksOf } from "./risks.ts"
import type { PlannedCommand } from "./shell-plan.ts"
import { literalWord } from "./words.ts"

/**
 * Returns `read` checks for the file names in code that the command gets as an argument or as input. The list may be
 * incomplete, because code can also build file names at run time. A name that does not look like a path is checked only
 * against deny rules.
 */
export function codeChecks(
  command: PlannedCommand,
  directories: readonly string[] | undefined,
  scope: CommandScope,
  policy: Policy,
): Check[] {
  const names = namesInCode(command, scope)
  const checks = names
    .slice(0, maxNames)
    .flatMap((text) =>
      (absolutePaths(text, literalWord(text), directories) ?? []).flatMap((path) =>
        nameChecks(text, path, scope, policy),
      ),
    )
  const isComplete = names.length <= maxNames && (directories !== undefined || names.length === 0)
  return isComplete || deniesOf(policy, "read").length === 0
    ? checks
    : [...checks, unknownRead(command.pattern)]
}

/**
 * Returns the texts in a command's code that look like paths or name existing files. The command may change these
 * files.
 */
export function pathsInCode(
  command: PlannedCommand,
  directories: readonly string[] | undefined,
  scope: CommandScope,
): string[] {
  const exists = (text: string) =>
    absolutePaths(text, literalWord(text), directories)?.some((path) => pathExists(path, scope))
  return namesInCode(command, scope)
    .slice(0, maxNames)
    .filter((text) => isPathLike(text) || exists(text))
}

/** Maximum number of names to check in code. */
const maxNames = 1_000

function namesInCode(command: PlannedCommand, scope: CommandScope): string[] {
  const [program, ...words] = command.argv
  const name = program ? basename(tableName(program, scope)) : ""
  const isCode = risksOf(name, words).length > 0 || command.inputUse === "runs"
  const texts = words
    .map(({ text }) => text)
    .filter((text) => /[\s()'"{}]/.test(text) || /^\d*[rR]|^data:/.test(text))
  const code = [...(isCode ? texts : []), command.code ?? ""].flatMap(decodings)
  return [...new Set(code.flatMap(namesIn))].filter(isPossibleName)
}

/** Returns the words and strings in the text that may be names of files. */
function namesIn(text: string): string[] {
  const words = text.replaceAll(/(?<=^|[;{\s])\d*[rRwW](?=\S*\/)/g, " ").match(/[\p{L}\p{N}_.~/@+-]+/gu) ?? []
  return [...words, ...[...text.matchAll(/(["'])([^"'\p{Cc}]+)\1/gu)].map(([, , inner = ""]) => inner)]
}

function isPathLike(text: string): boolean {
  return looksLikePath(text) || protectionOf(text, "read") !== undefined
}

function nameChecks(text: string, path: string, scope: CommandScope, policy: Policy): Check[] {
  const isDeniedByName = ({ forms }: Check) => {
    const { action, rule } = judge(policy, "read", forms)
    return action === "deny" && rule !== undefined && !coversAll(rule)
  }
  const reads = fileChecks("read", path, scope).filter(({ permission }) => permission === "read")
  const isDirectory = /[^./]/.test(text) && (looksLikePath(text) || kindOf(path) === "directory")
  return [
    ...reads.filter((check) => isPathLike(text) || isDeniedByName(check)),
    ...(isDirectory ? possibleFilesBelow(path, scope, policy) : []),
  ]
}
