import type { SessionApi } from "../client/api.ts"
import type { Input, PromptFile } from "../schema/input.ts"
import { oneLine, visible } from "../view/visible.ts"
import { clip } from "./card-parts.ts"
import type { Keys } from "./keybindings.ts"
import type { Theme } from "./theme.ts"

/** Lets the user edit inputs that have not been delivered. */
export interface WaitingInputs {
  /** Id of the input that the user is editing, or undefined. */
  readonly editing: string | undefined
  /**
   * Holds an input while the user edits it. Resolves with the input's content, or with undefined if the input has
   * already been delivered or withdrawn.
   */
  take(session: SessionApi, input: Input): Promise<{ text: string; files: PromptFile[] } | undefined>
  /** Withdraws the edited input, because its new text is sent as a different input. */
  replace(session: SessionApi): Promise<void>
  /** Ends the edit and releases the input, which is then delivered unchanged. */
  release(session: SessionApi): Promise<void>
  forget(): void
}

/** Creates the state for editing pending inputs. */
export function createWaitingInputs(): WaitingInputs {
  let editing: string | undefined
  return {
    get editing() {
      return editing
    },
    async take(session, input) {
      try {
        const { text, files = [] } = await session.inputs.edit(input.id, { held: true })
        editing = input.id
        return { text, files }
      } catch (error) {
        if (isEnded(error)) return undefined
        throw error
      }
    },
    async replace(session) {
      const id = editing
      editing = undefined
      if (id !== undefined) await session.inputs.withdraw(id)
    },
    async release(session) {
      const id = editing
      editing = undefined
      if (id === undefined) return
      try {
        await session.inputs.edit(id, { held: false })
      } catch (error) {
        if (!isEnded(error)) throw error
      }
    },
    forget() {
      editing = undefined
    },
  }
}

function isEnded(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "input.ended"
}

/** Formats the pending inputs, one per line, followed by a hint, if any. */
export function renderQueue(
  inputs: readonly Input[],
  { width, theme, keys, editing }: { width: number; theme: Theme; keys: Keys; editing: string | undefined },
): string[] {
  const lines = inputs.map((input) => {
    const text = oneLine(input.text, width)
    const line = `${theme.accent("›")} ${theme.dim(`${kindOf(input, editing)}: ${text}`)}`
    return clip(input.problem === undefined ? line : `${line} ${theme.error(visible(input.problem))}`, width)
  })
  if (inputs.some(({ paused }) => paused))
    lines.push(clip(theme.warning("  The queue is paused. Send an input or use /queue to continue."), width))
  else if (inputs.length > 0 && keys.label("takeBack") !== "" && editing === undefined)
    lines.push(clip(theme.dim(`  ${keys.label("takeBack")} edits the last input`), width))
  return lines
}

/** Describes the state of an input: `editing` or `held`, or when it is delivered and whether it is paused. */
export function kindOf({ id, delivery, held, paused }: Input, editing: string | undefined): string {
  if (id === editing) return "editing"
  if (held) return "held"
  const kind = delivery === "queue" ? "queued" : "next"
  return paused ? `${kind}, paused` : kind
}
