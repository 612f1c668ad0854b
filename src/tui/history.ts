import { appendFileSync, mkdirSync } from "node:fs"
import { readFile, rename, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import * as z from "zod"
import { systemCode } from "../util/errors.ts"

/** The texts that the user sent or cleared earlier, in all sessions. */
export interface InputHistory {
  /** Returns the texts, newest first, without repetitions. */
  list(): string[]
  /**
   * Adds a text, unless the text is empty or repeats the latest one. Never fails, because storage errors are ignored.
   */
  add(text: string): void
}

/** Maximum number of texts in a list. If a file has more than twice as many entries, opening it drops the oldest. */
const maxEntries = 1_000

const Entry = z.object({ text: z.string(), time: z.number() })

/**
 * Opens the history in a file with one JSON object per line. Invalid lines are ignored. Several processes may use the
 * file at the same time.
 */
export async function openHistory(path: string): Promise<InputHistory> {
  let entries = await readEntries(path)
  if (entries.length > 2 * maxEntries) {
    entries = entries.slice(-maxEntries)
    await rewrite(path, entries).catch(ignoreSystemError)
  }
  return {
    list: () => [...new Set(entries.toReversed().map(({ text }) => text))].slice(0, maxEntries),
    add(text) {
      if (text.trim() === "" || entries.at(-1)?.text === text) return
      const entry = { text, time: Date.now() }
      entries.push(entry)
      // Written before the text is sent, so that a killed process does not lose the text.
      append(path, `${JSON.stringify(entry)}\n`)
    },
  }
}

async function readEntries(path: string): Promise<z.infer<typeof Entry>[]> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    ignoreSystemError(error)
    return ""
  })
  return text.split("\n").flatMap((line) => {
    try {
      return line === "" ? [] : [Entry.parse(JSON.parse(line))]
    } catch {
      return []
    }
  })
}

function append(path: string, line: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
    appendFileSync(path, line, { mode: 0o600 })
  } catch (error) {
    ignoreSystemError(error)
  }
}

async function rewrite(path: string, entries: readonly object[]): Promise<void> {
  const next = `${path}.${process.pid}.new`
  await writeFile(next, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""), { mode: 0o600 })
  await rename(next, path)
}

function ignoreSystemError(error: unknown): void {
  if (systemCode(error) === undefined) throw error
}
