import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Component, Editor, type Focusable, matchesKey, type TUI } from "@earendil-works/pi-tui"
import type { Delivery, PromptFile } from "../schema/input.ts"
import { errorMessage, TackleError, UsageError } from "../util/errors.ts"
import { pasteEnd, pasteStart } from "./card-parts.ts"
import { type CompletionSources, createCompletion } from "./completion.ts"
import type { InputHistory } from "./history.ts"
import { clipboardImage, imagePath, readImage } from "./images.ts"
import type { Keys } from "./keybindings.ts"
import { editorTheme, type Theme } from "./theme.ts"

/** An input as the user wrote it. */
export interface WrittenInput {
  text: string
  files: PromptFile[]
}

/** Options for {@link createPromptEditor}. */
export interface PromptEditorOptions {
  tui: TUI
  theme: Theme
  keys: Keys
  history: InputHistory
  completions: CompletionSources
  env: Readonly<Record<string, string | undefined>>
  /** Called when the user presses a key for `input.submit` (delivery `steer`) or for `queue` (delivery `queue`). */
  onSend(input: WrittenInput, delivery: Extract<Delivery, "steer" | "queue">): void
  /** Returns true if an input can be queued, for example because a run is active. */
  canQueue(): boolean
  onSearchHistory(): void
  /** Called when the user types `?` in an empty editor. */
  onHelp(): void
  onProblem(message: string): void
}

/** The editor in which the user writes inputs. */
export interface PromptEditor extends Component, Focusable {
  /** Returns the text, including the full content of each pasted text. */
  text(): string
  /** Replaces the input. */
  setInput(input: WrittenInput): void
  /** Returns the input and clears the editor. */
  take(): WrittenInput
  /** Adds a text to the history. */
  remember(text: string): void
  readonly isEmpty: boolean
  /** True while a list of completions is open. The keys that cancel and submit then belong to the list. */
  readonly isCompleting: boolean
}

/**
 * Creates the editor. A mark such as `[image 1]` represents an image in the text. The image is sent if the text still
 * contains its mark.
 */
export function createPromptEditor(options: PromptEditorOptions): PromptEditor {
  const { tui, keys, history, onProblem } = options
  const editor = new Editor(tui, editorTheme(options.theme), { paddingX: 1, autocompleteMaxVisible: 8 })
  editor.setAutocompleteProvider(createCompletion(options.completions))
  for (const text of history.list().slice(0, 100).toReversed()) editor.addToHistory(text)
  let images = new Map<string, PromptFile>()
  let imageCount = 0
  /** Pasted text that is still arriving. */
  let paste: string | undefined
  /** The latest pasted text that the editor shows as a mark. */
  let marked: { paste: string; mark: string } | undefined

  editor.onSubmit = (text) => send(text, "steer")

  function send(text: string, delivery: Extract<Delivery, "steer" | "queue">): void {
    const input = withImages(text)
    if (text.trim() === "") return
    clearImages()
    remember(text)
    options.onSend(input, delivery)
  }

  function remember(text: string): void {
    history.add(text)
    editor.addToHistory(text)
  }

  function withImages(text: string): WrittenInput {
    return { text, files: [...images].flatMap(([mark, file]) => (text.includes(mark) ? [file] : [])) }
  }

  function clearImages(): void {
    images = new Map()
    imageCount = 0
  }

  function attach(file: PromptFile): void {
    imageCount += 1
    const mark = `[image ${imageCount}]`
    images.set(mark, file)
    editor.insertTextAtCursor(`${mark} `)
    tui.requestRender()
  }

  /** Attaches the image at a pasted path, or inserts the path. */
  async function attachPasted(path: string, data: string): Promise<void> {
    const image = await readImage(path)
    if (image) attach(image)
    else editor.handleInput(data)
    tui.requestRender()
  }

  async function openEditor(): Promise<void> {
    const text = await editExternally(editor.getExpandedText(), { tui, env: options.env })
    if (text !== undefined) editor.setText(text)
  }

  function attempt(work: Promise<void>): void {
    work.catch((error: unknown) => {
      if (!TackleError.isInstance(error)) throw error
      onProblem(errorMessage(error))
    })
  }

  /** Collects pasted text that arrives in pieces. Returns true if the input is part of pasted text. */
  function takePaste(data: string): boolean {
    if (paste === undefined && !data.startsWith(pasteStart)) return false
    paste = (paste ?? "") + data
    if (!paste.includes(pasteEnd)) return true
    const whole = paste
    paste = undefined
    const path = imagePath(whole.slice(pasteStart.length, whole.indexOf(pasteEnd)))
    if (path !== undefined) attempt(attachPasted(path, whole))
    else if (whole === marked?.paste && editor.getText().includes(marked.mark)) showPastes()
    else insertPaste(whole)
    return true
  }

  function insertPaste(whole: string): void {
    const before = new Set(editor.getText().match(pasteMark))
    editor.handleInput(whole)
    const mark = editor
      .getText()
      .match(pasteMark)
      ?.find((each) => !before.has(each))
    marked = mark === undefined ? undefined : { paste: whole, mark }
  }

  /** Replaces the marks of long pastes with their texts. */
  function showPastes(): void {
    editor.setText(editor.getExpandedText())
    marked = undefined
  }

  return {
    get focused() {
      return editor.focused
    },
    set focused(value) {
      editor.focused = value
    },
    get isEmpty() {
      return editor.getText() === ""
    },
    get isCompleting() {
      return editor.isShowingAutocomplete()
    },
    text: () => editor.getExpandedText(),
    setInput({ text, files }) {
      clearImages()
      editor.setText(text)
      for (const file of files) {
        imageCount += 1
        const mark = `[image ${imageCount}]`
        images.set(mark, file)
        if (!text.includes(mark)) editor.insertTextAtCursor(`${text === "" ? "" : " "}${mark}`)
      }
    },
    remember,
    take() {
      const input = withImages(editor.getExpandedText())
      clearImages()
      editor.setText("")
      return input
    },
    handleInput(data) {
      if (takePaste(data)) return
      if (keys.matches(data, "externalEditor")) attempt(openEditor())
      else if (keys.matches(data, "pasteImage")) attempt(clipboardImage(options.env).then(attach))
      else if (keys.matches(data, "searchHistory")) options.onSearchHistory()
      else if (keys.matches(data, "queue") && options.canQueue() && !editor.isShowingAutocomplete()) queue()
      else if (matchesKey(data, "?") && editor.getText() === "") options.onHelp()
      else editor.handleInput(data)
    },
    handleMouse: (event) => editor.handleMouse(event),
    invalidate: () => editor.invalidate(),
    render: (width) => editor.render(width),
  }

  function queue(): void {
    const text = editor.getExpandedText().trim()
    if (text === "") return
    editor.setText("")
    send(text, "queue")
  }
}

/** Matches the marks that the library shows in place of long pastes. */
const pasteMark = /\[paste #\d+ [^\]]+\]/g

/**
 * Opens the text in the editor that `$VISUAL` or `$EDITOR` specifies. The editor uses the terminal until it exits.
 * Returns the changed text, or undefined if the editor exits with an error. Throws `UsageError` if no editor is set, or
 * if the editor cannot be started.
 */
async function editExternally(
  text: string,
  { tui, env }: { tui: TUI; env: Readonly<Record<string, string | undefined>> },
): Promise<string | undefined> {
  const [program, ...args] = (env.VISUAL || env.EDITOR || "").split(/\s+/).filter((word) => word !== "")
  if (program === undefined) throw new UsageError("Set VISUAL or EDITOR to edit the input in an editor.")
  const directory = await mkdtemp(join(tmpdir(), "tackle-input-"))
  const file = join(directory, "input.md")
  try {
    await writeFile(file, text, { mode: 0o600 })
    tui.stop()
    let status: number | null
    try {
      status = await run(program, [...args, file])
    } finally {
      tui.start()
      tui.requestRender(true)
    }
    return status === 0 ? (await readFile(file, "utf8")).replace(/\n$/, "") : undefined
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function run(program: string, args: readonly string[]): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: "inherit" })
    child.on("error", (error) =>
      reject(
        new UsageError(
          `Cannot start the editor ${program}: ${errorMessage(error)}. Check VISUAL and EDITOR.`,
        ),
      ),
    )
    child.on("close", resolve)
  })
}
