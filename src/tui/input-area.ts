import { type Component, getKeybindings, matchesKey } from "@earendil-works/pi-tui"
import type { SessionApi } from "../client/api.ts"
import type { Delivery, Input, PromptFile } from "../schema/input.ts"
import type { ToolPart } from "../schema/part.ts"
import { errorMessage } from "../util/errors.ts"
import { oneLine, visible } from "../view/visible.ts"
import { clip } from "./card-parts.ts"
import { createSlashCommands, showKeys, unknownCommand } from "./commands.ts"
import type { InputHistory } from "./history.ts"
import { libraryKey } from "./keybindings.ts"
import { createPanel, type PanelText } from "./panel.ts"
import { pick } from "./picker.ts"
import { pickRewind } from "./pickers.ts"
import { createPromptEditor, type PromptEditor, type WrittenInput } from "./prompt-editor.ts"
import { createWaitingInputs, renderQueue } from "./queue.ts"
import type { Shell } from "./shell.ts"
import { createShellRunner, outputFile } from "./shell-runner.ts"

/** Options for {@link createInputArea}. */
export interface InputAreaOptions {
  shell: Omit<Shell, "showPanel" | "setInput" | "takeBack">
  history: InputHistory
  /** Returns the open session. Creates a session if none is open. */
  ensureSession(): Promise<SessionApi>
  /** Shows one of the user's shell commands and its output. */
  showCall(call: ToolPart): void
}

/** The editor, with the pending inputs, the commands, and the texts that the commands show. */
export interface InputArea {
  readonly editor: PromptEditor
  readonly panel: Component
  renderQueue(width: number): string[]
  /** Processes a key before the editor receives it. Returns true if the key must not reach the editor. */
  handleKey(data: string): boolean
  /**
   * Sends an input, or runs the command in it. If this fails, shows the error, and returns the input to the editor if
   * the editor is empty. Never rejects.
   */
  submit(input: WrittenInput, delivery: Delivery): Promise<void>
  /** True while one of the user's shell commands runs. */
  readonly isShellRunning: boolean
  /** Stops the user's shell command. Returns false if none is running. */
  stopShell(): boolean
  /** Clears the editor and adds its text to the history. Returns false if the editor was empty. */
  clear(): boolean
}

/** Time in milliseconds within which the user must press the `interrupt` key again to rewind. */
const rewindMs = 800

/** Creates the area with the editor, the pending inputs and the panel. */
export function createInputArea(options: InputAreaOptions): InputArea {
  const { history } = options
  const { api, tui, theme, keys, notify } = options.shell
  const shell: Shell = Object.create(options.shell, {
    showPanel: { value: showPanel },
    setInput: { value: replaceInput },
    takeBack: { value: takeBack },
  })
  const commands = createSlashCommands(shell)
  const panel = createPanel({
    ...{ theme, closeKey: keys.label("interrupt") },
    rows: () => Math.max(4, Math.floor(tui.terminal.rows / 2)),
  })
  const waiting = createWaitingInputs()
  const runner = createShellRunner({ api, show: options.showCall })
  /** Outputs of shell commands that the next prompt contains, with the session in which they were made. */
  let outputs: { file: PromptFile; sessionID: string | undefined }[] = []
  /** The input that was in the editor before the user started to edit a pending input. */
  let draft: WrittenInput | undefined
  let escapedAt = Number.NEGATIVE_INFINITY
  const editor = createPromptEditor({
    ...{ tui, theme, keys, history, env: shell.env },
    completions: { commands: allCommands, files: (query, signal) => api.findFiles(query, { signal }) },
    onSend: (input, delivery) => void submit(input, delivery),
    canQueue: () => shell.state?.isRunning === true || waiting.editing !== undefined,
    onSearchHistory: () => attempt(searchHistory()),
    onHelp: () => showKeys(shell),
    onProblem: notify,
  })

  function showPanel(title: string, text: PanelText): void {
    panel.show(title, text)
    tui.requestRender()
  }

  function attempt(work: Promise<unknown> | undefined): void {
    work?.catch((error: unknown) => notify(errorMessage(error)))
  }

  /** Returns the commands for completion: the UI commands, the project's commands, and the prompts from MCP servers. */
  async function allCommands() {
    const own = await api.commands()
    const names = new Set(commands.map(({ name }) => name))
    return [...commands, ...own.filter(({ name }) => !names.has(name)), ...(await prompts())]
  }

  /** Prompts from MCP servers. Requested only once, because the request may start servers. */
  let listed: Promise<{ name: string; description?: string }[]> | undefined
  function prompts(): Promise<{ name: string; description?: string }[]> {
    listed ??= api.mcpPrompts().then(
      (all) => all.map(({ server, name, description }) => ({ name: `${server}:${name}`, description })),
      () => [],
    )
    // Servers may take a long time to start. The completions omit their prompts until all servers have answered.
    return Promise.race([listed, new Promise<[]>((resolve) => setTimeout(() => resolve([]), promptsMs))])
  }

  async function submit(input: WrittenInput, delivery: Delivery): Promise<void> {
    const { text } = input
    panel.hide()
    try {
      const [, marks, command = ""] = shellInput.exec(text) ?? []
      if (marks !== undefined) await runShell(command, { isSent: marks === "!" })
      else if (commandName.test(text)) await runCommand(input, delivery)
      else await send(input, delivery)
    } catch (error) {
      if (editor.isEmpty) editor.setInput(input)
      notify(errorMessage(error))
    }
  }

  async function send({ text, files }: WrittenInput, delivery: Delivery): Promise<void> {
    const session = await options.ensureSession()
    if (waiting.editing !== undefined) {
      await waiting.replace(session)
      restoreDraft()
    }
    const attached = outputsFor(session.id)
    await api.send(session.id, text, { delivery, files: [...files, ...attached.map(({ file }) => file)] })
    outputs = outputs.filter((output) => !attached.includes(output))
  }

  async function runCommand(input: WrittenInput, delivery: Delivery): Promise<void> {
    const [, name = "", argument = ""] = commandName.exec(input.text) ?? []
    const command = commands.find((each) => each.name === name)
    if (command) {
      await command.run(argument.trim())
      return
    }
    const known = await allCommands()
    if (name.includes(":") || known.some((each) => each.name === name)) await send(input, delivery)
    else
      throw new Error(
        unknownCommand(
          name,
          known.map((each) => each.name),
        ),
      )
  }

  async function runShell(command: string, { isSent }: { isSent: boolean }): Promise<void> {
    if (command === "") return
    const sessionID = shell.session?.id
    const state = await runner.run(command, shell.state?.session.agent ?? shell.defaults.agent)
    if (!isSent) return
    outputs.push({ file: outputFile(command, state), sessionID })
    tui.requestRender()
  }

  /** Returns the outputs from a session, and those from before the first prompt created a session. */
  function outputsFor(id: string | undefined) {
    return outputs.filter(({ sessionID }) => sessionID === undefined || sessionID === id)
  }

  function renderOutputs(width: number): string[] {
    const names = outputsFor(shell.session?.id).map(({ file }) => visible(file.filename ?? ""))
    const hint = `sent with the next prompt. ${keys.label("interrupt")} removes it`
    return names.map((name) =>
      clip(theme.dim(`  + ${oneLine(name, Math.max(12, width - 50))} · ${hint}`), width),
    )
  }

  async function searchHistory(): Promise<void> {
    const items = history.list().map((text) => ({ value: text, label: text }))
    const text = await pick(tui, { title: "Earlier inputs", theme, items, verb: "edits" })
    if (text !== undefined) replaceInput({ text, files: [] })
  }

  /** Puts an input into the editor. Moves the text that was in the editor to the history. */
  function replaceInput(input: WrittenInput): void {
    const before = editor.text()
    if (before.trim() !== "" && before !== input.text) editor.remember(before)
    editor.setInput(input)
    tui.requestRender()
  }

  async function takeBack(id?: string): Promise<void> {
    const { session, state } = shell
    const inputs = (state?.inputs ?? []).filter(({ claimedBy }) => claimedBy === undefined)
    const input: Input | undefined = id === undefined ? inputs.at(-1) : inputs.find((each) => each.id === id)
    if (!session || !input || input.id === waiting.editing) return
    if (waiting.editing !== undefined) await waiting.release(session)
    else draft = editor.take()
    const taken = await waiting.take(session, input)
    if (taken) {
      editor.setInput(taken)
      const send = [libraryKey("tui.input.submit"), keys.label("queue")].filter((key) => key !== "")
      const cancel = keys.label("interrupt")
      const sends = send.length > 0 ? `${send.join(" or ")} sends the changed input. ` : ""
      notify(`${sends}${cancel && `${cancel} keeps the input unchanged.`}`.trim())
    } else {
      restoreDraft()
      notify("This input is no longer pending.")
    }
  }

  /** Returns true if the key that moves the cursor up can move a pending input to the editor. */
  function canTakeBack(): boolean {
    const isWaiting = shell.state?.inputs.some(({ claimedBy }) => claimedBy === undefined) === true
    return isWaiting && editor.isEmpty && waiting.editing === undefined && !panel.isOpen
  }

  async function release(session: SessionApi): Promise<void> {
    await waiting.release(session)
    editor.take()
    restoreDraft()
  }

  function restoreDraft(): void {
    if (draft && editor.isEmpty) editor.setInput(draft)
    draft = undefined
    tui.requestRender()
  }

  async function cycleAgent(): Promise<void> {
    const names = [...(await api.agents).values()]
      .filter(({ mode }) => mode !== "subagent")
      .map(({ name }) => name)
    const current = shell.state?.session.agent ?? shell.defaults.agent ?? names[0] ?? ""
    const next = names[(names.indexOf(current) + 1) % names.length]
    await commands.find(({ name }) => name === "agent")?.run(next ?? "")
  }

  /**
   * Called when the user presses the `interrupt` key (by default Escape). Does the first of these that applies: stops
   * the user's shell command, closes the panel, ends the edit of a pending input, interrupts the run, or removes outputs
   * of shell commands from the next prompt. A second press opens the list of earlier prompts.
   */
  function pressInterrupt(): boolean {
    const { session, state } = shell
    const isTwice = Date.now() - escapedAt < rewindMs
    escapedAt = Number.NEGATIVE_INFINITY
    if (stopShell()) return true
    if (panel.isOpen) panel.hide()
    else if (session && waiting.editing !== undefined) attempt(release(session))
    else if (!state?.isRunning && editor.isEmpty && outputsFor(session?.id).length > 0) removeOutputs()
    else if (session && isTwice) attempt(pickRewind(shell, session))
    else if (session) {
      escapedAt = Date.now()
      if (state?.isRunning) attempt(session.interrupt())
      else if (editor.isEmpty)
        notify(`Press ${keys.label("interrupt")} again to rewind to an earlier prompt.`)
    }
    return true
  }

  function removeOutputs(): void {
    const removed = outputsFor(shell.session?.id)
    outputs = outputs.filter((output) => !removed.includes(output))
    tui.requestRender()
  }

  function stopShell(): boolean {
    const { isRunning } = runner
    runner.stop()
    return isRunning
  }

  return {
    editor,
    panel,
    submit,
    stopShell,
    get isShellRunning() {
      return runner.isRunning
    },
    clear() {
      const { text } = editor.take()
      editor.remember(text)
      return text !== ""
    },
    renderQueue: (width) => [
      ...renderQueue(shell.state?.inputs ?? [], { width, theme, keys, editing: waiting.editing }),
      ...renderOutputs(width),
    ],
    handleKey(data) {
      // Two quick presses of Escape can arrive as one input.
      if (data === "\u001b\u001b" && keys.matches("\u001b", "interrupt"))
        return pressInterrupt() && pressInterrupt()
      if (keys.matches(data, "interrupt") && !editor.isCompleting) return pressInterrupt()
      escapedAt = Number.NEGATIVE_INFINITY
      if (panel.isOpen && scrollKeys.some((key) => matchesKey(data, key))) panel.handleInput?.(data)
      else if (keys.matches(data, "takeBack") || (isCursorUp(data) && canTakeBack())) attempt(takeBack())
      else if (keys.matches(data, "cycleAgent")) attempt(cycleAgent())
      else return false
      return true
    },
  }
}

function isCursorUp(data: string): boolean {
  return getKeybindings().matches(data, "tui.editor.cursorUp")
}

/** Time in milliseconds to wait for the prompts from MCP servers. */
const promptsMs = 200

/** Matches a text that calls a command, but not a path such as `/etc/hosts`. */
const commandName = /^\/([\w:.-]+)(?:\s+([\s\S]*))?$/

/** Matches a shell command: one mark sends its output with the next prompt, two marks do not. */
const shellInput = /^(!!?)\s*([\s\S]*?)\s*$/

const scrollKeys = ["pageUp", "pageDown", "shift+up", "shift+down"] as const
