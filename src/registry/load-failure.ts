import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { promisify } from "node:util"
import { errorMessage, TackleError } from "../util/errors.ts"
import type { FileStamps } from "../util/file-stamp.ts"
import { isRecord } from "../util/json.ts"
import { missingImport } from "../util/module-graph.ts"

/**
 * Why the file of a tool could not be loaded, with the place in one of its `files`: the import that leads nowhere, the
 * first of them that the stack names, or where its syntax is wrong.
 */
export async function loadFailure(error: unknown, path: string, files: FileStamps): Promise<string> {
  // Ours names the file itself, and its stack is ours.
  if (TackleError.isInstance(error)) return error.message
  const missing = missingImport(error)
  if (missing) return describeMissing(missing)
  const place =
    placeInStack(error, files) ?? (error instanceof SyntaxError ? await placeOfSyntaxError(path) : undefined)
  return place === undefined ? errorMessage(error) : `${errorMessage(error)} (${place})`
}

function describeMissing({ specifier, importer }: { specifier: string; importer: string }): string {
  const isPath = /^[./]/.test(specifier)
  const next = isPath
    ? "there is no such file"
    : "that is not installed there: `npm install` it beside the file"
  return `it imports "${specifier}" (${importer}${lineOf(specifier, importer)}), but ${next}.`
}

/** `:line` of the first that names it in quotes. */
function lineOf(specifier: string, importer: string): string {
  try {
    const lines = readFileSync(importer, "utf8").split("\n")
    const index = lines.findIndex((line) => /["'`]/.test(line) && line.includes(specifier))
    return index === -1 ? "" : `:${index + 1}`
  } catch {
    // Gone meanwhile: the file alone is told.
    return ""
  }
}

function placeInStack(error: unknown, files: FileStamps): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? "") : ""
  const places = [...stack.matchAll(/(?:file:\/\/)?(\/[^\s()?]+?)(?:\?[^:)\s]*)?:(\d+)(?::\d+)?/g)]
  const [, file, line] = places.find(([, file = ""]) => files.has(file)) ?? []
  return file === undefined ? undefined : `${file}:${line}`
}

/** Node tells the place of a syntax error to people alone: it is asked once more, in a process that runs nothing. */
async function placeOfSyntaxError(path: string): Promise<string | undefined> {
  try {
    await promisify(execFile)(process.execPath, ["--check", path], { env: {} })
    return undefined
  } catch (error) {
    const told = isRecord(error) && typeof error.stderr === "string" ? error.stderr : ""
    return /^.+:\d+$/m.exec(told)?.[0]
  }
}
