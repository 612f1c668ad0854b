import { type AutocompleteItem, type AutocompleteProvider, fuzzyFilter } from "@earendil-works/pi-tui"
import { showInvisible } from "../util/invisible.ts"

/** A command that the user can call with `/name`. */
export interface CompletedCommand {
  name: string
  description?: string
  /** Returns the possible arguments. */
  complete?(): Promise<AutocompleteItem[]>
}

/** Sources of completions. */
export interface CompletionSources {
  commands(): Promise<CompletedCommand[]>
  /** Returns the paths of files that resemble the query, best first. */
  files(query: string, signal: AbortSignal): Promise<string[]>
}

/**
 * Creates a provider that completes `/command`, a command's argument, and `@path`. If a source fails, the provider
 * suggests nothing.
 */
export function createCompletion({ commands, files }: CompletionSources): AutocompleteProvider {
  async function ofCommands(typed: string): Promise<AutocompleteItem[]> {
    const all = await commands()
    return fuzzyFilter(all, typed.slice(1), ({ name }) => name).map(({ name, description }) => ({
      value: `/${name}`,
      label: `/${showInvisible(name)}`,
      description: description && showInvisible(description.split("\n")[0] ?? ""),
    }))
  }

  async function ofArguments(name: string, typed: string): Promise<AutocompleteItem[]> {
    const command = (await commands()).find((each) => each.name === name)
    const items = (await command?.complete?.()) ?? []
    return fuzzyFilter(items, typed, ({ label }) => label)
  }

  async function ofFiles(typed: string, signal: AbortSignal): Promise<AutocompleteItem[]> {
    const query = typed.replace(/^@"?/, "")
    return (await files(query, signal)).map((path) => ({
      value: /\s/.test(path) ? `@"${path}"` : `@${path}`,
      label: showInvisible(path),
    }))
  }

  async function suggest(before: string, isFirst: boolean, signal: AbortSignal) {
    const [, name, argument] = (isFirst && /^\/(\S+) (\S*)$/.exec(before)) || []
    if (isFirst && /^\/\S*$/.test(before)) return { items: await ofCommands(before), prefix: before }
    if (name !== undefined && argument !== undefined) {
      const items = await ofArguments(name, argument)
      if (items.length > 0) return { items, prefix: argument }
    }
    const [, file] = mention.exec(before) ?? []
    return file === undefined ? undefined : { items: await ofFiles(file, signal), prefix: file }
  }

  return {
    triggerCharacters: ["@"],
    async getSuggestions(lines, cursorLine, cursorCol, { signal }) {
      const before = (lines[cursorLine] ?? "").slice(0, cursorCol)
      const found = await suggest(before, cursorLine === 0, signal).catch(() => undefined)
      return found && found.items.length > 0 ? found : null
    },
    applyCompletion(lines, cursorLine, cursorCol, item, prefix) {
      const line = lines[cursorLine] ?? ""
      const start = line.slice(0, cursorCol - prefix.length)
      const end = line.slice(cursorCol)
      const inserted = end.startsWith(" ") ? item.value : `${item.value} `
      return {
        lines: lines.with(cursorLine, start + inserted + end),
        cursorLine,
        cursorCol: start.length + inserted.length,
      }
    },
  }
}

/**
 * Matches an unfinished `@path` or `@"path with spaces"`. The characters that may precede `@` are the same as for a
 * mention in a prompt.
 */
const mention = /(?:^|[\s([{"'`,;:])(@"[^"]*|@[^\s"]*)$/
