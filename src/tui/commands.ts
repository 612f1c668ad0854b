import { mkdir, writeFile } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import type { AutocompleteItem } from "@earendil-works/pi-tui"
import type { SessionApi } from "../client/api.ts"
import { defaultDataDirectory } from "../engine/data-directory.ts"
import type { Usage } from "../event/events.ts"
import type { UndoResult } from "../session/handle.ts"
import { UsageError } from "../util/errors.ts"
import { showInvisible } from "../util/invisible.ts"
import { nearNames } from "../util/similarity.ts"
import { counted } from "../util/words.ts"
import { displayPath } from "../view/display-path.ts"
import { durationText, usageWords } from "../view/usage.ts"
import { oneLine } from "../view/visible.ts"
import { clip, renderTable, wrap } from "./card-parts.ts"
import { copyText } from "./clipboard.ts"
import { renderDiff } from "./diff-view.ts"
import { libraryKey } from "./keybindings.ts"
import {
  automatic,
  pickAgent,
  pickFork,
  pickGrant,
  pickInput,
  pickModel,
  pickRewind,
  pickTheme,
} from "./pickers.ts"
import { lastTurn, rewind, withAdvice } from "./rewind.ts"
import { pickSession } from "./session-picker.ts"
import type { Shell } from "./shell.ts"

/** A UI command that the user calls with `/name`. */
export interface SlashCommand {
  name: string
  description: string
  /** Returns the possible arguments. */
  complete?(): Promise<AutocompleteItem[]>
  run(argument: string): Promise<void> | void
}

/** A turn that the user undid with `/undo`. */
interface UndoneTurn {
  /** Id of the session that contains the turn. */
  sessionID: string
  /** Id of the copy without the turn. */
  copyID: string
  /** Id of the copy's last message at the time of the undo. */
  lastMessageID: string | undefined
  /** Whether files were restored. */
  hasFiles: boolean
}

/** Creates the UI commands. */
export function createSlashCommands(shell: Shell): SlashCommand[] {
  const { api } = shell

  /** Returns the open session. Throws `UsageError` if no session is open, for example before the first prompt. */
  function opened(): SessionApi {
    if (shell.session) return shell.session
    throw new UsageError("This session is empty. Send a prompt first.")
  }

  async function setModel(given: string): Promise<void> {
    const model = given || (await pickModel(shell))
    if (model === undefined) return
    if (shell.session) await shell.session.update({ model })
    else {
      await api.model(model)
      shell.defaults.model = model
    }
    shell.notify(`The model is now ${model}.`)
  }

  async function setAgent(given: string): Promise<void> {
    const agent = given || (await pickAgent(shell))
    if (agent === undefined) return
    if (shell.session) await shell.session.update({ agent })
    else if ((await api.agents).has(agent)) shell.defaults.agent = agent
    else throw new UsageError(`The agent "${agent}" does not exist. /agent shows the available agents.`)
    shell.notify(`The agent is now ${agent}.`)
  }

  async function setTheme(given: string): Promise<void> {
    const { themes } = shell
    const entries = await themes.list()
    const name = given || (await pickTheme(shell, entries))
    if (name === undefined) return
    if (name === automatic) {
      await themes.choose(undefined)
      shell.notify("After the next start, the colors follow the terminal's background.")
      return
    }
    const chosen = entries.find((entry) => entry.name === name)
    if (!chosen) {
      const known = [...entries.map((entry) => entry.name), automatic].join(", ")
      throw new UsageError(`The theme "${name}" does not exist. Available themes: ${known}.`)
    }
    if ("problem" in chosen) throw new UsageError(chosen.problem)
    shell.setTheme(chosen.theme)
    await themes.choose(name)
  }

  /** The turns that were undone, oldest first. */
  const undoneTurns: UndoneTurn[] = []

  /**
   * Undoes the last turn: restores the files that it changed, continues in a copy of the session without the turn, and
   * returns the turn's prompt to the editor.
   */
  async function undo(): Promise<void> {
    const session = opened()
    const turn = lastTurn(await session.messages())
    if (!turn) throw new UsageError("This session has no prompt to undo.")
    const { session: copy, undone } = await rewind({ api, session }, turn, "both")
    await shell.open(copy)
    const hasFiles = undone !== undefined
    undoneTurns.push({ sessionID: session.id, copyID: copy.id, lastMessageID: lastMessageID(), hasFiles })
    shell.setInput({ text: turn.text, files: turn.images })
    showFiles("Undid the last turn; /redo restores it", undone)
  }

  /**
   * Redoes the most recently undone turn: applies its file changes again, and opens the session that contains it. If
   * the open session is not the copy that `/undo` created, only applies the file changes again of the turn that was
   * most recently undone in this session.
   */
  async function redo(): Promise<void> {
    const session = opened()
    const last = undoneTurns.at(-1)
    if (last?.copyID !== session.id)
      return showFiles("Redid the turn", await withAdvice("redo", session, () => session.redo()))
    if (last.lastMessageID !== lastMessageID())
      throw new UsageError(
        "Cannot redo the turn, because you sent a prompt after the undo. /sessions opens the earlier session.",
      )
    const before = await api.sessions.get(last.sessionID)
    if (!before) throw new UsageError("The session with the undone turn was deleted.")
    const redone = last.hasFiles ? await withAdvice("redo", before, () => before.redo()) : undefined
    undoneTurns.pop()
    await shell.open(before)
    showFiles("Redid the turn", redone)
  }

  function lastMessageID(): string | undefined {
    return shell.state?.messages.at(-1)?.message.id
  }

  function showFiles(title: string, result: UndoResult | undefined): void {
    const { worktree = "" } = shell.state?.session ?? {}
    const { files = [], unseen = [] } = result ?? {}
    const names = files.map(({ path, kind }) => `${kind} ${showInvisible(displayPath(path, worktree))}`)
    shell.showPanel(title, [...names, ...unseen].join("\n") || "No files were changed.")
  }

  async function exportSession(given: string): Promise<void> {
    const { id } = opened()
    const path = given ? resolve(given) : join(defaultDataDirectory(shell.env), "exports", `${id}.json`)
    await mkdir(dirname(path), { recursive: true })
    const archive = await api.sessions.export(id)
    await writeFile(path, `${JSON.stringify(archive, undefined, 2)}\n`, { flag: "wx", mode: 0o600 })
    shell.notify(`Exported the session to ${path}.`)
  }

  async function showChanges(): Promise<void> {
    const files = (await api.sessions.diff(opened().id)) ?? []
    const { worktree = "" } = shell.state?.session ?? {}
    if (files.length === 0) return shell.notify("This session has changed no files.")
    const { theme } = shell
    shell.showPanel(`Changes in ${counted(files.length, "file")}`, (width) =>
      files.flatMap(({ path, kind, diff }) => [
        clip(theme.bold(`${kind} ${showInvisible(displayPath(path, worktree))}`), width),
        ...(diff === undefined ? [] : renderDiff(diff, { width, theme, maxLines: Number.POSITIVE_INFINITY })),
        "",
      ]),
    )
  }

  async function showCost(): Promise<void> {
    const { sessions, usage, models, tools } = await api.sessions.stats({ session: opened().id })
    const words = (each: Usage) => usageWords(each).join(" · ") || "no tokens counted"
    const { theme } = shell
    const subagents = sessions > 1 ? ` in this session and ${counted(sessions - 1, "subagent")}` : ""
    shell.showPanel("Cost", (width) => [
      ...wrap(`${words(usage)}${subagents}`, width),
      ...(usage.cost > 0 ? [] : wrap(theme.dim("No prices are configured for these models."), width)),
      "",
      ...renderTable(
        models.map(({ model, steps, usage }) => ({
          name: model,
          text: `${counted(steps, "step")} · ${words(usage)}`,
        })),
        { nameWidth: 28, width, theme },
      ),
      ...renderTable(
        tools.map(({ tool, calls, failed, durationMs }) => ({
          name: tool,
          text: [
            counted(calls, "call"),
            durationText(durationMs),
            ...(failed > 0 ? [`${failed} failed`] : []),
          ].join(" · "),
        })),
        { nameWidth: 28, width, theme },
      ),
    ])
  }

  async function copyAnswer(): Promise<void> {
    const texts = (shell.state?.messages ?? []).flatMap(({ message, parts }) =>
      message.role === "assistant"
        ? [parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n")]
        : [],
    )
    const text = texts.findLast((each) => each.trim() !== "")
    if (text === undefined) throw new UsageError("This session has no answer to copy.")
    await copyText(text, { env: shell.env, terminal: shell.tui.terminal })
    shell.notify(`Copied the last answer (${counted(text.length, "character")}).`)
  }

  async function compact(): Promise<void> {
    shell.notify("Compacting…")
    const { before, after, summarized, pruned } = await opened().compact()
    if (!summarized && pruned === 0) shell.notify("The history is too short to compact.")
    else shell.notify(`Compacted ${before} characters of history to ${after}.`)
  }

  async function showTools(): Promise<void> {
    const { agent, model } = shell.state?.session ?? {}
    const name = model && `${model.providerID}/${model.modelID}`
    const tools = await api.tools({
      agent: agent ?? shell.defaults.agent,
      model: name ?? shell.defaults.model,
    })
    const lines = tools.map(({ id, description, offered, reason }) => {
      const text = offered ? oneLine(description, 100) : `not offered: ${oneLine(reason ?? "", 100)}`
      return `${shell.theme.bold(showInvisible(id))}  ${shell.theme.dim(text)}`
    })
    shell.showPanel(counted(tools.length, "tool"), lines.join("\n"))
  }

  async function showServers(): Promise<void> {
    const servers = await api.mcpServers()
    const lines = servers.map(({ id, status, tools, problem }) => {
      const text = status === "connected" ? counted(tools.length, "tool") : oneLine(problem ?? status, 200)
      return `${status === "connected" ? shell.theme.success("✓") : shell.theme.error("✗")} ${showInvisible(id)}  ${shell.theme.dim(text)}`
    })
    const advice = shell.isRemote
      ? "Add one with tackle mcp add on the Tackle server's machine."
      : "Add one with tackle mcp add."
    shell.showPanel("MCP servers", lines.join("\n") || `No MCP servers are configured. ${advice}`)
  }

  function showHelp(): void {
    const rows = commands.map(({ name, description }) => ({ name: `/${name}`, text: description }))
    const more = [
      "Your own commands, your skills and the prompts from MCP servers also begin with /.",
      "@ completes a file path. ! runs a shell command. ? shows the keys.",
    ]
    shell.showPanel("Commands", (width) => [
      ...renderTable(rows, { nameWidth: 14, width, theme: shell.theme }),
      "",
      ...more.flatMap((line) => wrap(line, width)),
    ])
  }

  const commands: SlashCommand[] = [
    { name: "help", description: "Show the commands", run: showHelp },
    { name: "keys", description: "Show the keys", run: () => showKeys(shell) },
    { name: "new", description: "Start a new session", run: () => shell.open(undefined) },
    {
      name: "sessions",
      description: "Open, search, rename and delete sessions",
      run: () => pickSession(shell),
    },
    {
      ...{ name: "model", description: "Change the model" },
      complete: async () =>
        (await api.models()).map(({ ref }) => modelItem(`${ref.providerID}/${ref.modelID}`)),
      run: setModel,
    },
    {
      ...{ name: "agent", description: "Change the agent" },
      complete: async () =>
        [...(await api.agents).values()]
          .filter(({ mode }) => mode !== "subagent")
          .map(({ name, description }) => ({ value: name, label: name, description })),
      run: setAgent,
    },
    {
      ...{ name: "theme", description: "Change the colors" },
      complete: async () => (await shell.themes.list()).map(({ name }) => modelItem(name)),
      run: setTheme,
    },
    {
      name: "undo",
      description: "Undo the last turn and its file changes, and return its prompt to the editor",
      run: undo,
    },
    { name: "redo", description: "Redo the most recently undone turn", run: redo },
    {
      name: "fork",
      description: "Continue a copy of this session from any message",
      run: () => pickFork(shell, opened()),
    },
    {
      name: "rewind",
      description: "Go back to an earlier prompt: conversation, files, or both",
      run: () => pickRewind(shell, opened()),
    },
    { name: "compact", description: "Replace old messages with a summary for the model", run: compact },
    {
      name: "queue",
      description: "Edit or withdraw pending inputs, or continue a paused queue",
      run: () => pickInput(shell, opened()),
    },
    {
      name: "permissions",
      description: 'List and revoke the permissions that you granted with "always"',
      run: () => pickGrant(shell),
    },
    {
      name: "tools",
      description: "List the tools, with the reason if a tool is not offered",
      run: showTools,
    },
    { name: "mcp", description: "List the MCP servers", run: showServers },
    { name: "diff", description: "Show the file changes of this session", run: showChanges },
    { name: "cost", description: "Show tokens, cost and calls, with subagents", run: showCost },
    { name: "copy", description: "Copy the last answer to the clipboard", run: copyAnswer },
    { name: "export", description: "Write the session to a file", run: exportSession },
    {
      name: "fullscreen",
      description: "Switch between the scrollback and the alternate screen",
      run: shell.toggleFullscreen,
    },
    { name: "exit", description: "Quit (the session is saved)", run: shell.leave },
  ]
  return commands
}

function modelItem(name: string): AutocompleteItem {
  return { value: name, label: name }
}

/**
 * Shows the keys of the actions in a panel. Omits actions without a key, and the library's scroll actions for
 * full-screen mode.
 */
export function showKeys({ keys, theme, showPanel }: Pick<Shell, "keys" | "theme" | "showPanel">): void {
  const rows = keys
    .list()
    .filter(({ name, keys: own }) => own.length > 0 && !name.startsWith("altScreen."))
    .sort((a, b) => Number(a.name.includes(".")) - Number(b.name.includes(".")))
    .map(({ name, keys: own, description }) => ({
      name: own.join(" "),
      text: `${description} ${theme.dim(`(${name})`)}`,
    }))
  const submit = libraryKey("tui.input.submit")
  const head = `${submit && `${submit} sends. `}Type / for commands, @ for files, ! for shell, ? for this list.`
  showPanel("Keys", (width) => [
    ...wrap(head, width),
    "",
    ...renderTable(rows, { nameWidth: 22, width, theme }),
  ])
}

/** Returns the message for an unknown command. */
export function unknownCommand(name: string, known: readonly string[]): string {
  const [near] = nearNames(name, known, 3)
  const meant = near === undefined ? "" : ` Did you mean /${near}?`
  return `Unknown command /${name}.${meant} /help lists the commands.`
}
