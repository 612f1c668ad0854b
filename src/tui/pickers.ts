import type { SessionApi } from "../client/api.ts"
import type { Grant } from "../schema/permission.ts"
import { showInvisible } from "../util/invisible.ts"
import { localMinute } from "../util/time.ts"
import { displayPath } from "../view/display-path.ts"
import { rootOf } from "../view/root-session.ts"
import { type PickerItem, pick } from "./picker.ts"
import { kindOf } from "./queue.ts"
import { type RewindPoint, type RewindTarget, rewind, rewindPoints } from "./rewind.ts"
import type { Shell } from "./shell.ts"
import type { ThemeEntry } from "./theme-file.ts"

function fileCount({ files }: Pick<RewindPoint, "files">): string {
  return files.length === 1 ? "1 file" : `${files.length} files`
}

/** Lets the user choose a model. Resolves with `provider/model`, or with undefined if the user closes the list. */
export async function pickModel({ tui, theme, api, state, defaults }: Shell): Promise<string | undefined> {
  const { model } = state?.session ?? {}
  const current = model ? `${model.providerID}/${model.modelID}` : defaults.model
  const items = (await api.models()).map(({ ref, name }) => {
    const value = `${ref.providerID}/${ref.modelID}`
    return { value, label: value, detail: name, isCurrent: value === current }
  })
  return pick(tui, { title: "Model", theme, items })
}

/** Lets the user choose an agent. Resolves with its name, or with undefined if the user closes the list. */
export async function pickAgent({ tui, theme, api, state, defaults }: Shell): Promise<string | undefined> {
  const current = state?.session.agent ?? defaults.agent
  const items = [...(await api.agents).values()]
    .filter(({ mode }) => mode !== "subagent")
    .map(({ name, description }) => ({
      value: name,
      label: name,
      detail: description,
      isCurrent: name === current,
    }))
  return pick(tui, { title: "Agent", theme, items })
}

/** Name of the choice that follows the terminal's background. */
export const automatic = "automatic"

/** Lets the user choose a theme by its name, or {@link automatic}. Shows why a theme cannot be used. */
export function pickTheme(
  { tui, theme }: Shell,
  entries: readonly ThemeEntry[],
): Promise<string | undefined> {
  const items = entries.map((entry) => ({
    value: entry.name,
    label: entry.name,
    detail: "problem" in entry ? entry.problem : entry.theme.background,
    isCurrent: entry.name === theme.name,
  }))
  const follow = { value: automatic, label: automatic, detail: "follows the terminal's background" }
  return pick(tui, { title: "Theme", theme, items: [...items, follow] })
}

/** Lets the user choose a message, and opens a copy of the session that ends with the message's turn. */
export async function pickFork({ tui, theme, api, open, notify }: Shell, session: SessionApi): Promise<void> {
  const messages = await session.messages()
  const items = messages.toReversed().flatMap(({ message, parts }) => {
    const text = parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
    const mark = message.role === "user" ? "›" : " "
    return text.length === 0
      ? []
      : [
          {
            value: message.id,
            label: `${mark} ${text.join(" ")}`,
            detail: localMinute(message.time.created),
          },
        ]
  })
  const at = await pick(tui, { title: "Fork after a message's turn", theme, items, verb: "forks" })
  if (at === undefined) return
  const copy = await api.sessions.fork(session.id, { at })
  if (!copy) return
  await open(copy)
  notify("This is a copy. /sessions returns to the original session.")
}

/**
 * Lets the user choose an earlier prompt, and whether to rewind the conversation, the files or both. If the
 * conversation is rewound, the prompt returns to the editor.
 */
export async function pickRewind(shell: Shell, session: SessionApi): Promise<void> {
  const { tui, theme, open, notify, setInput, state } = shell
  const points = rewindPoints(await session.messages())
  const items = points.map((point) => ({
    value: point,
    label: point.text,
    detail: [localMinute(point.time), ...(point.changedTurns > 0 ? [fileCount(point)] : [])].join(" · "),
  }))
  const point = await pick(tui, { title: "Rewind to before a prompt", theme, items })
  if (!point) return
  const turns = point.changedTurns
  const detail = `${fileCount(point)} from ${turns === 1 ? "1 turn" : `${turns} turns`}`
  const paths = point.files.map((path) => `  ${displayPath(path, state?.session.worktree ?? "")}`)
  const about = paths.length > 0 ? ["Files to restore:", ...paths] : []
  const targets: PickerItem<RewindTarget>[] = [
    ...(turns > 0 ? [{ value: "both" as const, label: "conversation and files", detail }] : []),
    { value: "conversation", label: "only the conversation", detail: "files stay as they are" },
    ...(turns > 0 ? [{ value: "files" as const, label: "only the files", detail }] : []),
  ]
  const target = await pick(tui, { title: "Rewind", theme, about, items: targets, verb: "rewinds" })
  if (target === undefined) return
  const { session: next, undone } = await rewind({ api: shell.api, session }, point, target)
  if (next.id !== session.id) {
    await open(next)
    setInput({ text: point.text, files: point.images })
  }
  const restored = undone?.files.length ?? 0
  const files = restored === 0 ? "" : ` Restored ${restored === 1 ? "1 file" : `${restored} files`}.`
  const place = next.id === session.id ? "" : " /sessions returns to the original session."
  notify(`Rewound.${files}${place}`)
}

/** Lets the user edit or withdraw a pending input, and continue a paused queue. */
export async function pickInput({ tui, theme, takeBack, notify }: Shell, session: SessionApi): Promise<void> {
  const list = async () => {
    const inputs = await session.inputs.list()
    const waiting = inputs.map((input) => ({
      value: input.id,
      label: input.text,
      detail: kindOf(input, undefined),
    }))
    const isPaused = inputs.some(({ paused }) => paused)
    return isPaused ? [{ value: "", label: "Continue the paused queue" }, ...waiting] : waiting
  }
  const items = await list()
  if (items.length === 0) {
    notify("No inputs are pending.")
    return
  }
  const id = await pick(tui, {
    ...{ title: "Pending inputs", theme, items, verb: "edits" },
    actions: [
      {
        key: "ctrl+x",
        label: "Ctrl+X withdraws",
        run(value, picker) {
          const withdrawn = value ? session.inputs.withdraw(value) : Promise.resolve()
          withdrawn
            .then(list)
            .then((next) => picker.setItems(next))
            .then(() => tui.requestRender())
            .catch((error: Error) => notify(error.message))
        },
      },
    ],
  })
  if (id === "") await session.inputs.resume()
  else if (id !== undefined) await takeBack(id)
}

/** Lists the permissions that the user granted with "always", and lets the user revoke them. */
export async function pickGrant({ tui, theme, api, notify, session, state }: Shell): Promise<void> {
  // Grants for a session are stored for its root session, and also apply to the sessions of subagents.
  const root = await rootOf(api, { id: session?.id, parentID: state?.session.parentID })
  const place = ({ scope, sessionID }: Grant) =>
    scope === "project" || sessionID === root ? `in this ${scope}` : "in another session"
  const list = async () =>
    (await api.grants()).map((grant) => ({
      value: grant.id,
      label: `${grant.permission}: ${showInvisible(grant.pattern)}`,
      detail: `${place(grant)}, since ${localMinute(grant.time.created)}`,
    }))
  const items = await list()
  if (items.length === 0) {
    notify('You have allowed nothing with "always" in this project.')
    return
  }
  await pick(tui, {
    ...{ title: 'Allowed with "always"', theme, items, verb: "closes" },
    actions: [
      {
        key: "ctrl+x",
        label: "Ctrl+X revokes",
        run(id, picker) {
          if (id === undefined) return
          api
            .revoke([id])
            .then(list)
            .then((next) => picker.setItems(next))
            .then(() => tui.requestRender())
            .catch((error: Error) => notify(error.message))
        },
      },
    ],
  })
}
