import { basename, isAbsolute, join, resolve } from "node:path"
import { externalChecks, fileChecks, isWithinScope, pathExists, relativeToWorktree } from "../path-checks.ts"
import { deniesOf, judge, type Policy } from "../policy.ts"
import { namesProtected, protectionOf } from "../protected-files.ts"
import type { Check } from "../request.ts"
import { type CommandContext, type CommandScope, coversAll, expandWord } from "./command-forms.ts"
import { kindOf, possibleCheck, possibleFilesBelow } from "./directory-checks.ts"
import { fileOperands, filesInValues, isReader, isWriter, readsNames, takesText } from "./operands.ts"
import {
  absolutePaths,
  candidates,
  globDirectory,
  globFiles,
  isPossibleName,
  looksLikePath,
  withoutTextWords,
} from "./paths-in-words.ts"
import { decodings } from "./possible-commands.ts"
import { risksOf } from "./risks.ts"
import type { PlannedCommand, PlannedFile } from "./shell-plan.ts"
import { harmlessDevice, literalWord, type Word } from "./words.ts"
import { innerCommands } from "./wrapped-commands.ts"

/**
 * Returns checks for the words of a command: `read` for each word that names a file, `edit` for protected files and for
 * files that the program replaces, and `external_directory` for unknown paths and paths outside the worktree.
 */
export async function commandFileChecks(context: CommandContext): Promise<Check[]> {
  const { command, name, words, directories } = context
  if (takesText(name)) return []
  const somewhere = directories ? [] : [unknownPlace(command), anyFile("read", command.pattern)]
  // The plan lists the inner command of a wrapper as a separate command with the same words.
  const wraps =
    name !== "find" && innerCommands(name, words).some(({ kind }) => kind === "argv" || kind === "shell")
  const operands = fileOperands(name, words)
  // If the operands are known, they do not include the program's script.
  const texts = operands === words ? withoutTextWords(name, words) : operands
  const considered = wraps ? [] : [...texts, ...filesInValues(name, words)]
  const found = await wordsChecks(considered, context)
  const checks = readsNames(name) ? found.map(onlyDenied) : found
  return [...somewhere, ...checks]
}

/**
 * Changes a `read` check so that only a deny rule can refuse it. Used for commands that show the names of files, but
 * not the contents.
 */
function onlyDenied(check: Check): Check {
  if (check.permission !== "read") return check
  const { protection: _, reason: __, ...rest } = check
  return { ...rest, onlyDenies: true, options: { ...check.options, counts: undefined } }
}

/** Returns checks for a file that the shell itself opens, or for a loop value that may name a file. */
export async function plannedFileChecks(
  { kind, target }: PlannedFile,
  directories: readonly string[] | undefined,
  { scope, policy }: Pick<CommandContext, "scope" | "policy">,
): Promise<Check[]> {
  if (kind === "mention") return wordsChecks([target], { name: "", directories, scope, policy })
  const access = kind === "read" ? "read" : "edit"
  if (harmlessDevice.test(target.text) && !target.dynamic) return []
  if (target.dynamic || target.glob)
    return [unknownFile(access, target), unknownFile("external_directory", target)]
  const paths = absolutePaths(expandWord(target, scope.home), target, directories)
  if (!paths) return [unknownFile(access, target), unknownFile("external_directory", target)]
  return paths.flatMap((path) => fileChecks(access, path, scope))
}

type WordContext = Pick<CommandContext, "name" | "directories" | "scope" | "policy">

async function wordsChecks(words: readonly Word[], context: WordContext): Promise<Check[]> {
  const checks: Check[] = []
  for (const word of words) {
    if (word.contained) continue
    // The text after the host does not name a local file.
    if (!word.splits && /^https?:\/\/[\w.:-]+\//.test(word.text)) continue
    if (word.dynamic)
      checks.push(unknownFile("external_directory", word), anyFile("read", word.text), ...knownByName(word))
    else
      for (const text of candidates(word, context.scope.home))
        checks.push(...(await textChecks(text, word, context)))
  }
  return checks
}

async function textChecks(text: string, word: Word, context: WordContext): Promise<Check[]> {
  const { directories, scope } = context
  if (/^[A-Za-z][\w+.-]*:\/\//.test(text) || harmlessDevice.test(text)) return []
  // If the working directory is unknown, `commandFileChecks` already asks once for all words of the command.
  const start = word.glob ? globDirectory(text) : text
  const paths = start === undefined ? undefined : absolutePaths(start, literalWord(start), directories)
  if (start !== undefined && !paths) return []
  if (!paths) return [unknownFile("external_directory", word)]
  if (!word.glob) return paths.flatMap((path) => pathChecks(path, text, context))

  const checks = paths.flatMap((path) => [
    ...externalChecks(path, scope),
    possibleFile(text, word, path, scope),
  ])
  for (const directory of isAbsolute(text) ? ["/"] : (directories ?? [])) {
    const files = await globFiles(text, directory, { word, listing: scope.listing })
    if (!files) checks.push(unknownFile("read", word))
    for (const file of files ?? []) checks.push(...pathChecks(resolve(directory, file), file, context))
  }
  return checks
}

function pathChecks(path: string, text: string, { name, scope, policy }: WordContext): Check[] {
  const relative = relativeToWorktree(path, scope)
  const mentioned =
    looksLikePath(text) ||
    isReader(name) ||
    isWriter(name) ||
    protectionOf(relative, "edit") !== undefined ||
    pathExists(path, scope)
  // The file may exist when the command runs.
  if (!mentioned && isWithinScope(path, scope)) return checksDeniedByName("read", path, { scope, policy })
  const checks = fileChecks("read", path, scope)
  const changes = isWriter(name) || (!isReader(name) && name !== "" && name !== "git")
  if (!changes) return checks
  const edits = fileChecks("edit", path, scope).filter((check) => check.permission === "edit")
  return [...checks, ...edits.filter((check) => isWriter(name) || check.protection !== undefined)]
}

/**
 * Returns the checks for a file that a rule denies by name, whether the file exists or not. A rule for all files does
 * not name a file.
 */
function checksDeniedByName(
  access: "read" | "edit",
  path: string,
  { scope, policy }: Pick<CommandContext, "scope" | "policy">,
): Check[] {
  if (deniesOf(policy, access).length === 0) return []
  return fileChecks(access, path, scope).filter(({ permission, forms }) => {
    const { action, rule } = judge(policy, access, forms)
    return permission === access && action === "deny" && rule !== undefined && !coversAll(rule)
  })
}

/** Returns a check that asks if a deny rule may match a file that the glob matches, whether the file exists or not. */
function possibleFile(text: string, word: Word, directory: string, scope: CommandScope): Check {
  const span = join(directory, (word.span.split("/").at(-1) ?? "*") || "*")
  const deep = text.slice(text.search(/[*?[]/)).includes("/") ? join(directory, "*") : span
  const relative = relativeToWorktree(deep, scope)
  return possibleCheck("read", relative, { pattern: text, forms: [relative, deep] })
}

/** Returns a check for a file that is known only at run time. Only a rule for all files can allow the check. */
function unknownFile(permission: string, word: Word): Check {
  return {
    permission,
    pattern: word.text,
    forms: [word.text],
    options: { counts: coversAll, span: "*" },
    reason: "the file is known only at run time",
  }
}

/**
 * Returns a check for a file with a protected name in an unknown directory, such as `$DIR/.env` or
 * `/proc/$PPID/environ`.
 */
function knownByName(word: Word): Check[] {
  const protection = protectionOf(word.span, "read")
  if (!protection) return []
  return [
    {
      permission: "read",
      pattern: word.text,
      forms: [word.text],
      options: { counts: (rule) => namesProtected(rule.pattern, protection) },
      protection: protection.reason,
    },
  ]
}

/** Returns a check for a command that uses an unknown file. The check asks if a rule denies any file. */
export function anyFile(access: "read" | "edit", pattern: string): Check {
  return possibleCheck(access, "*", {
    pattern,
    forms: [pattern],
    reason: "the file is known only at run time",
  })
}

function unknownPlace(command: PlannedCommand): Check {
  return {
    permission: "external_directory",
    pattern: command.pattern,
    forms: [command.pattern],
    options: { counts: coversAll, span: "*" },
    reason: "its working directory is unknown",
  }
}

/**
 * Returns `read` checks for the file names in code that the command receives as an argument or as input. The list may
 * be incomplete, because code can also build file names at run time. A name that does not look like a path is checked
 * only against deny rules.
 */
export function codeChecks(context: CommandContext): Check[] {
  const { command, directories, scope, policy } = context
  const names = namesInCode(context)
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
    : [...checks, anyFile("read", command.pattern)]
}

/** Returns the texts in a command's code that may name files. The command may change or create these files. */
export function pathsInCode(context: CommandContext): string[] {
  return namesInCode(context).slice(0, maxNames)
}

/** Maximum number of names to check in code. */
const maxNames = 1_000

function namesInCode({ command, name, words }: CommandContext): string[] {
  const isCode = risksOf(basename(name), words).length > 0 || command.inputUse === "runs"
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
  const reads = isPathLike(text)
    ? fileChecks("read", path, scope).filter(({ permission }) => permission === "read")
    : checksDeniedByName("read", path, { scope, policy })
  const isDirectory = /[^./]/.test(text) && (looksLikePath(text) || kindOf(path) === "directory")
  return [...reads, ...(isDirectory ? possibleFilesBelow(path, scope, policy) : [])]
}
