import type { RefObject } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { clientOf } from "./connection.ts"
import { announce } from "./notices.tsx"

/** A completion: the text that it inserts, and what the list shows. */
interface Item {
  value: string
  label: string
  detail?: string | undefined
  origin?: string | undefined
}

/** The open list of completions. */
interface Suggestions {
  items: readonly Item[]
  /** Number of characters before the cursor that a completion replaces. */
  length: number
  active: number
}

/** Time in milliseconds without typing before files are searched. */
const pauseMs = 80

/**
 * Matches an unfinished `@path` or `@"path with spaces"`. The match can follow the same characters as a mention in a
 * prompt.
 */
const mention = /(?:^|[\s([{"'`,;:])(@"[^"]*|@[^\s"]*)$/

/**
 * Completes `/command` and `@path` in a text field. The focus stays in the field: arrow keys choose, Enter and Tab
 * insert, and Escape closes the list.
 */
export function useCompletion({
  box,
  value,
  directory,
  onInput,
}: {
  box: RefObject<HTMLTextAreaElement | null>
  value: string
  directory: string
  onInput(value: string): void
}) {
  const [open, setOpen] = useState<Suggestions>()
  const cursor = useRef<number>(undefined)
  const search = useRef<AbortController>(undefined)

  function close() {
    search.current?.abort()
    setOpen(undefined)
  }

  async function suggest() {
    search.current?.abort()
    search.current = new AbortController()
    const { signal } = search.current
    const before = box.current?.value.slice(0, box.current.selectionStart) ?? ""
    const command = /^\/\S*$/.exec(before)?.[0]
    const file = mention.exec(before)?.[1]
    if (command === undefined && file === undefined) return setOpen(undefined)
    const items = await (command === undefined
      ? filesFor(file ?? "", directory, signal)
      : commandsFor(command, directory)
    ).catch(() => [])
    if (signal.aborted) return
    const { length } = command ?? file ?? ""
    setOpen(items.length > 0 ? { items, length, active: 0 } : undefined)
    announce(`${items.length} ${items.length === 1 ? "suggestion" : "suggestions"}`)
  }

  function insert({ value: text }: Item) {
    const element = box.current
    if (!element || !open) return
    const end = element.selectionStart
    const start = end - open.length
    const rest = value.slice(end)
    const inserted = /^\s/.test(rest) ? text : `${text} `
    cursor.current = start + inserted.length
    onInput(value.slice(0, start) + inserted + rest)
    close()
  }

  useLayoutEffect(() => {
    if (cursor.current !== undefined) box.current?.setSelectionRange(cursor.current, cursor.current)
    cursor.current = undefined
  }, [value])

  useEffect(() => () => search.current?.abort(), [])

  /** Applies a key to the open list. Returns true if the list used the key. */
  function onKey(event: KeyboardEvent): boolean {
    const item = open?.items[open.active]
    if (!open || !item || event.isComposing) return false
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      const { length } = open.items
      setOpen({ ...open, active: (open.active + step + length) % length })
    } else if (event.key === "Escape") close()
    else if (event.key === "Tab" || (event.key === "Enter" && !event.ctrlKey && !event.metaKey)) {
      // A command that is already complete is sent instead.
      const isComplete = value === item.value && event.key === "Enter"
      if (isComplete) close()
      else insert(item)
      if (isComplete) return false
    } else return false
    event.preventDefault()
    return true
  }

  const list = open && (
    <div class="completions" role="listbox" id="completions" aria-label="Suggestions">
      {open.items.map((item, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the text field
        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the text field
        <div
          key={item.value}
          id={`completion-${index}`}
          role="option"
          aria-selected={index === open.active}
          ref={(element) => {
            if (index === open.active) element?.scrollIntoView({ block: "nearest" })
          }}
          // The focus stays in the text field.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => insert(item)}
        >
          <span class="label">{item.label}</span>
          {item.detail !== undefined && <span class="detail">{item.detail}</span>}
          {item.origin !== undefined && <span class="origin">{item.origin}</span>}
        </div>
      ))}
    </div>
  )
  return {
    list,
    onKey,
    suggest,
    close,
    /** Attributes for the text field. */
    attributes: {
      "aria-autocomplete": "list" as const,
      "aria-haspopup": "listbox" as const,
      "aria-controls": open && "completions",
      "aria-activedescendant": open && `completion-${open.active}`,
    },
  }
}

async function filesFor(typed: string, directory: string, signal: AbortSignal): Promise<Item[]> {
  await new Promise((resolve) => setTimeout(resolve, pauseMs))
  if (signal.aborted) return []
  const query = typed.replace(/^@"?/, "")
  const paths = await clientOf(directory).findFiles(query, { limit: 12, signal })
  return paths.map((path) => {
    const end = path.lastIndexOf("/") + 1
    return {
      value: /\s/.test(path) ? `@"${path}"` : `@${path}`,
      label: path.slice(end),
      detail: path.slice(0, end),
    }
  })
}

/** Project commands, keyed by directory. */
const commands = new Map<string, Promise<Item[]>>()

/** Prompts from MCP servers, keyed by directory. Empty until the servers have started. */
const prompts = new Map<string, Item[]>()

async function commandsFor(typed: string, directory: string): Promise<Item[]> {
  let own = commands.get(directory)
  if (!own) {
    own = readCommands(directory)
    commands.set(directory, own)
    own.catch(() => commands.delete(directory))
  }
  const words = typed.slice(1).toLowerCase()
  const found = [...(await own), ...(prompts.get(directory) ?? [])].filter(({ label }) =>
    label.toLowerCase().includes(words),
  )
  // Names that begin with the typed text come first.
  return found.sort(
    (a, b) => Number(b.label.slice(1).startsWith(words)) - Number(a.label.slice(1).startsWith(words)),
  )
}

async function readCommands(directory: string): Promise<Item[]> {
  const client = clientOf(directory)
  // Servers may take a long time to start. Until then, the list does not contain their prompts.
  client.mcpPrompts().then(
    (all) => {
      const items = all.map(({ server, name, description }) =>
        commandItem(`${server}:${name}`, description, "MCP"),
      )
      prompts.set(directory, items)
    },
    () => {},
  )
  const all = (await client.commands()) as { name: string; description?: string; origin?: string }[]
  return all.map(({ name, description, origin }) => commandItem(name, description, origin))
}

function commandItem(name: string, description: string | undefined, origin: string | undefined): Item {
  return { value: `/${name}`, label: `/${name}`, detail: description?.split("\n")[0], origin }
}
