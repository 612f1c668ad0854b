import type { SessionApi } from "../client/api.ts"
import type { ListedSession } from "../schema/session.ts"
import { errorMessage } from "../util/errors.ts"
import { localMinute } from "../util/time.ts"
import { oneLine } from "../view/visible.ts"
import { type Picker, type PickerItem, pick } from "./picker.ts"
import { sessionTree } from "./session-tree.ts"
import type { Shell } from "./shell.ts"
import { askText } from "./text-prompt.ts"

/** Maximum number of sessions that the list contains. A search finds all sessions. */
const listed = 200

/**
 * Lets the user open, rename and delete sessions. Shows the sessions of the project, or of all projects, with forks and
 * subagents below their parent session. Omits sessions without a prompt. Typing searches titles and texts.
 */
export async function pickSession(shell: Shell): Promise<void> {
  const { tui, theme, api, session, notify } = shell
  let everywhere = false
  /** Session for which the user has pressed the key to delete once. */
  let isDeleting: string | undefined

  const item = ({ id, title, time, match, directory }: ListedSession): PickerItem<string> => ({
    value: id,
    label: title || "(no prompt yet)",
    detail: [localMinute(time.updated), ...(everywhere ? [directory] : [])].join(" · "),
    excerpt: match?.excerpt,
    isCurrent: id === session?.id,
  })

  async function items(): Promise<PickerItem<string>[]> {
    const tree = sessionTree(await listSessions(shell, everywhere))
    return tree.map(({ session, lead }) => ({ ...item(session), lead }))
  }

  async function refresh(picker: Picker<string>): Promise<void> {
    picker.setItems(await items())
    tui.requestRender()
  }

  function attempt(picker: Picker<string>, work: Promise<unknown>): void {
    work.catch((error: unknown) => picker.notify(errorMessage(error)))
  }

  async function rename(id: string, picker: Picker<string>): Promise<void> {
    const chosen = await api.sessions.get(id)
    const { title = "" } = (await chosen?.info()) ?? {}
    const name = await askText(tui, { title: "Rename the session", theme, value: title })
    if (chosen === undefined || name === undefined) return
    await chosen.update({ title: name })
    await refresh(picker)
  }

  async function remove(id: string, picker: Picker<string>): Promise<void> {
    if (id === session?.id)
      return picker.notify("This session is open. Open another one before you delete it.")
    if (isDeleting !== id) {
      isDeleting = id
      return picker.notify("Press Ctrl+X again to delete this session and its subagents' sessions.")
    }
    isDeleting = undefined
    await api.sessions.delete(id)
    await refresh(picker)
  }

  const id = await pick(tui, {
    ...{ title: "Sessions", theme, items: await items(), verb: "opens" },
    async search(search) {
      return (await api.sessions.list({ search, everywhere, limit: 50 })).map(item)
    },
    preview: async (id) => previewOf(await api.sessions.get(id)),
    actions: [
      {
        ...{ key: "ctrl+r", label: "Ctrl+R renames" },
        run: (id, picker) => id !== undefined && attempt(picker, rename(id, picker)),
      },
      {
        ...{ key: "ctrl+x", label: "Ctrl+X deletes" },
        run: (id, picker) => id !== undefined && attempt(picker, remove(id, picker)),
      },
      {
        ...{ key: "ctrl+a", label: "Ctrl+A all" },
        run(_, picker) {
          everywhere = !everywhere
          picker.notify(everywhere ? "The sessions of all projects." : "The sessions of this project.")
          attempt(picker, refresh(picker))
        },
      },
    ],
  })
  if (id === undefined || id === session?.id) return
  const chosen = await api.sessions.get(id)
  if (!chosen) return
  const { directory, worktree } = await chosen.info()
  // The tools of a session work in its directory, so another project's session needs that project's rules.
  if (everywhere && !(await api.sessions.list({ limit: listed })).some((each) => each.worktree === worktree))
    return notify(`This session belongs to ${directory}. To open it, run tackle -s ${id} in that directory.`)
  await shell.open(chosen)
}

/** Returns the newest sessions, and the open session with its subagents. */
async function listSessions(
  { api, session, state }: Pick<Shell, "api" | "session" | "state">,
  everywhere: boolean,
): Promise<ListedSession[]> {
  const found: ListedSession[] = await api.sessions.list({ everywhere, limit: listed })
  const started = found.filter(({ id, title }) => title !== "" || id === session?.id)
  const known = new Set(started.map(({ id }) => id))
  const own = [session?.id ?? [], ...(state?.subagents.keys() ?? [])].flat().filter((id) => !known.has(id))
  const others = await Promise.all(own.map(async (id) => (await api.sessions.get(id))?.info()))
  return [...started, ...others.flatMap((each) => each ?? [])].map((each) => ({
    ...each,
    parentID: each.parentID ?? each.forkedFrom,
  }))
}

/** Returns the texts of the latest messages, oldest first. */
async function previewOf(session: SessionApi | undefined): Promise<string[]> {
  const messages = (await session?.messages({ limit: 6 })) ?? []
  return messages
    .flatMap(({ message, parts }) => {
      const text = parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
      if (text.length === 0) return []
      return [`${message.role === "user" ? "› " : ""}${oneLine(text.join(" "), 400)}`]
    })
    .slice(-4)
}
