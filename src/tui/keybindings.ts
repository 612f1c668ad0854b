import { readFile } from "node:fs/promises"
import {
  getKeybindings,
  type KeybindingDefinitions,
  type KeybindingsConfig,
  KeybindingsManager,
  type KeyId,
  setKeybindings,
  TUI_KEYBINDINGS,
} from "@earendil-works/pi-tui"
import { type ParseError, parse, printParseErrorCode } from "jsonc-parser"
import { systemCode } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { nearNames } from "../util/similarity.ts"

/** Actions of the interactive terminal that the editor library does not define. */
const ownActions = {
  interrupt: { defaultKeys: "escape", description: "Interrupt the run; press twice to rewind" },
  queue: {
    defaultKeys: ["tab", "alt+enter"],
    description: "Send the input after the run instead of during it",
  },
  takeBack: { defaultKeys: "alt+up", description: "Edit the last pending input" },
  searchHistory: { defaultKeys: "ctrl+r", description: "Search earlier inputs" },
  externalEditor: { defaultKeys: "ctrl+g", description: "Edit the input in $VISUAL or $EDITOR" },
  pasteImage: { defaultKeys: "ctrl+v", description: "Attach the image from the clipboard" },
  cycleAgent: { defaultKeys: "shift+tab", description: "Change to the next agent" },
  expand: { defaultKeys: "ctrl+o", description: "Show or hide the full output of calls" },
  scrollUp: { defaultKeys: "pageUp", description: "Scroll up in full-screen mode, or show earlier messages" },
  scrollDown: { defaultKeys: "pageDown", description: "Scroll down in full-screen mode" },
  clear: { defaultKeys: "ctrl+c", description: "Clear the input, or interrupt the run; press twice to exit" },
  redraw: { defaultKeys: "ctrl+l", description: "Draw the screen again" },
  suspend: { defaultKeys: "ctrl+z", description: "Suspend Tackle (resume it with fg)" },
  exit: { defaultKeys: "ctrl+d", description: "Exit if the input is empty" },
} as const satisfies Record<string, { defaultKeys: KeyId | KeyId[]; description: string }>

/** An action of the interactive terminal. */
export type Action = keyof typeof ownActions

declare module "@earendil-works/pi-tui" {
  interface Keybindings extends Record<`app.${Action}`, true> {}
}

const definitions: KeybindingDefinitions = {
  ...TUI_KEYBINDINGS,
  // The library would scroll before a card or the editor receives these keys.
  "tui.altScreen.pageUp": {
    defaultKeys: [],
    description: "Scroll up in full-screen mode, even behind a card",
  },
  "tui.altScreen.pageDown": {
    defaultKeys: [],
    description: "Scroll down in full-screen mode, even behind a card",
  },
  "tui.altScreen.top": { defaultKeys: "ctrl+home", description: "Scroll to the top in full-screen mode" },
  "tui.altScreen.bottom": { defaultKeys: "ctrl+end", description: "Scroll to the end in full-screen mode" },
  ...Object.fromEntries(Object.entries(ownActions).map(([name, action]) => [`app.${name}`, action])),
}

/** The keys for all actions. */
export interface Keys {
  /** Returns true if the input is a key of the action. */
  matches(data: string, action: Action): boolean
  /** Returns the first key for an action, such as `Ctrl+R`, or an empty string if the action has none. */
  label(action: Action): string
  /** Returns all actions with their names in a keybindings file and their keys. */
  list(): { name: string; keys: string[]; description: string }[]
}

/**
 * Reads the keybindings file: a JSON object that maps actions to a key or a list of keys. An empty list removes an
 * action's keys. The keys for the library's actions apply to all editors and text fields of this process. `problems`
 * describes a file that cannot be used, ignored entries, and keys that are assigned to two actions.
 */
export async function loadKeys(path: string): Promise<{ keys: Keys; problems: string[] }> {
  const { bindings, problems } = await readBindings(path)
  const manager = new KeybindingsManager(definitions, bindings)
  setKeybindings(manager)
  const names = Object.keys(definitions).map((id) => ({
    id: id as keyof typeof TUI_KEYBINDINGS,
    name: nameOf(id),
  }))
  problems.push(...conflicts(names, bindings, manager).map((problem) => `${path}: ${problem}`))
  const keys: Keys = {
    matches: (data, action) => manager.matches(data, `app.${action}`),
    label: (action) => keyLabel(manager.getKeys(`app.${action}`)[0] ?? ""),
    list: () =>
      names.map(({ id, name }) => ({
        name,
        keys: manager.getKeys(id).map(keyLabel),
        description: manager.getDefinition(id).description ?? "",
      })),
  }
  return { keys, problems }
}

async function readBindings(path: string): Promise<{ bindings: KeybindingsConfig; problems: string[] }> {
  let text: string
  try {
    text = await readFile(path, "utf8")
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    return { bindings: {}, problems: code === "ENOENT" ? [] : [`${path}: cannot be read (${code}).`] }
  }
  const errors: ParseError[] = []
  const value: unknown = parse(text, errors, { allowTrailingComma: true })
  const [first] = errors
  if (first) {
    const line = text.slice(0, first.offset).split("\n").length
    return {
      bindings: {},
      problems: [`${path}:${line}: not valid JSON (${printParseErrorCode(first.error)}).`],
    }
  }
  if (!isRecord(value))
    return { bindings: {}, problems: [`${path}: expected an object that maps actions to keys.`] }
  const bindings: KeybindingsConfig = {}
  const problems: string[] = []
  for (const [name, given] of Object.entries(value)) {
    if (name === "$schema") continue
    const id = idOf(name)
    const keys = [given].flat()
    const bad = keys.find((key) => typeof key !== "string" || !isKey(key))
    if (id === undefined) problems.push(`${path}: unknown action "${name}".${suggestion(name)}`)
    else if (bad !== undefined)
      problems.push(
        `${path}: "${name}" has the unknown key ${JSON.stringify(bad)}. Write keys like "ctrl+r", "alt+up" or "f2".`,
      )
    else bindings[id] = keys as KeyId[]
  }
  return { bindings, problems }
}

function suggestion(name: string): string {
  const [near] = nearNames(name, Object.keys(definitions).map(nameOf), 3)
  return near === undefined ? "" : ` Did you mean "${near}"?`
}

/** Returns the name of an action in a keybindings file. */
function nameOf(id: string): string {
  return id.replace(/^(?:tui|app)\./, "")
}

function idOf(name: string): string | undefined {
  return Object.keys(definitions).find((id) => nameOf(id) === name)
}

const keyNames = new Set([
  ...[
    "escape",
    "esc",
    "enter",
    "return",
    "tab",
    "space",
    "backspace",
    "delete",
    "insert",
    "clear",
    "home",
    "end",
  ],
  ...["pageup", "pagedown", "up", "down", "left", "right"],
  ...Array.from({ length: 12 }, (_, index) => `f${index + 1}`),
])

function isKey(key: string): boolean {
  const [, base = ""] = /^(?:(?:ctrl|shift|alt|super)\+)*(.+)$/i.exec(key) ?? []
  return keyNames.has(base.toLowerCase()) || /^[!-~]$/.test(base)
}

/**
 * Returns true if the action is active in the editor. The keys of these actions must differ. Lists and full-screen mode
 * can use the same keys.
 */
function isInEditor(id: string): boolean {
  return /^(?:app|tui\.editor|tui\.input)\./.test(id)
}

/** Returns a problem for each key that the file assigns to an editor action and that another editor action also has. */
function conflicts(
  names: readonly { id: keyof typeof TUI_KEYBINDINGS; name: string }[],
  bindings: KeybindingsConfig,
  manager: KeybindingsManager,
): string[] {
  const found = new Set<string>()
  const shared = names.filter(({ id }) => isInEditor(id))
  for (const { id, name } of shared.filter((each) => each.id in bindings))
    for (const other of shared) {
      const key = manager.getKeys(id).find((each) => manager.getKeys(other.id).includes(each))
      if (other.id === id || key === undefined || (hasDefault(id, key) && hasDefault(other.id, key))) continue
      const [first, second] = [name, other.name].sort()
      found.add(`the key "${key}" has two actions, "${first}" and "${second}". Change one of them.`)
    }
  return [...found]
}

function hasDefault(id: string, key: KeyId): boolean {
  return [definitions[id]?.defaultKeys ?? []].flat().includes(key)
}

/**
 * Returns the first key for an action in the library's editors and text fields, such as `Enter` for `tui.input.submit`,
 * or an empty string if the action has none.
 */
export function libraryKey(action: keyof typeof TUI_KEYBINDINGS): string {
  return keyLabel(getKeybindings().getKeys(action)[0] ?? "")
}

/** Formats a key for display, such as `Ctrl+R`. */
function keyLabel(key: string): string {
  const names: Readonly<Record<string, string>> = {
    escape: "Esc",
    pageUp: "PgUp",
    pageDown: "PgDn",
    up: "↑",
    down: "↓",
    left: "←",
    right: "→",
  }
  return key
    .split("+")
    .map((part) => names[part] ?? part.charAt(0).toUpperCase() + part.slice(1))
    .join("+")
}
