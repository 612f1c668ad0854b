import type { Bus } from "../event/bus.ts"
import type { Delivery, Input, PromptFile } from "../schema/input.ts"
import type {
  CurrentInputs,
  Lease,
  LeaseHolder,
  Store,
  TransactionQuery,
  UpdateInputsOptions,
} from "../store/store.ts"
import { TackleError, UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { currentTime } from "../util/time.ts"
import type { CommandCall } from "./command.ts"
import { eventOf } from "./session-events.ts"

/** Options for `SessionHandle.send`. */
export interface SendOptions {
  /**
   * Id of the input: 1 to 200 letters, digits, `_`, `-`, `.` or `:`. Sending the same input again with the same id has
   * no effect.
   */
  id?: string
  /** When the input reaches the model. Default: `steer`. With `steer`, a command waits for the end of the run. */
  delivery?: Delivery
  files?: readonly PromptFile[]
  /** The parsed command, if the text calls one. */
  command?: CommandCall
}

/** Confirms that an input is stored. `seq` is the sequence number of its event. */
export type Receipt = Pick<Input, "id" | "seq" | "state">

/** A change to a pending input. */
export interface InputEdit {
  /** New text. It does not call a command unless `command` is also set. */
  text?: string
  /** The parsed command, if the new text calls one. Used only with `text`. */
  command?: CommandCall
  files?: readonly PromptFile[]
  delivery?: Delivery
  /** New position among the pending inputs, from 0. A position after the end moves the input to the end. */
  position?: number
  /**
   * Whether the input is held: it is not delivered until `held` is set to false. Other edits do not change this
   * property.
   */
  held?: boolean
}

/** Thrown when an input is sent with the id of an earlier input but with different content or another delivery. */
export class InputConflictError extends TackleError {
  constructor(id: string) {
    super(
      `The input ${id} has already been sent with different content or another delivery. Use a new id for a new input.`,
      {
        code: "input.conflict",
        recoverable: false,
      },
    )
  }
}

/** The reason why an input can no longer be changed. A pending input is being delivered. */
const ends: Readonly<Record<Input["state"], string>> = {
  pending: "is being delivered to the model",
  promoted: "was delivered to the model",
  withdrawn: "was withdrawn",
}

/** Thrown when a caller changes or withdraws an input that is no longer pending or is being delivered. */
export class InputEndedError extends TackleError {
  constructor({ id, state }: Input) {
    super(`The input ${id} can no longer be changed: it ${ends[state]}. Send a new input.`, {
      code: "input.ended",
      recoverable: false,
    })
  }
}

/**
 * Requests a worker for the session `key`, which has pending inputs. A second request with the same `id` has no effect.
 * With `query`, the request is part of the transaction in which `query` runs.
 */
export type Dispatch = (
  job: { key: string; id: string; reason: "input" },
  query?: TransactionQuery,
) => Promise<void>

/** The input queue of one session. All operations are atomic across processes. */
export interface InputQueue {
  /**
   * Stores an input, resumes the inputs that an interrupt has paused, and returns the input. If an input with this id
   * has already been sent, only returns that input, and `isNew` is false. Throws {@link InputConflictError} if the id
   * was used for different content or another delivery, and `UsageError` if the id is invalid or the input is empty.
   */
  admit(text: string, options: SendOptions): Promise<{ input: Input; isNew: boolean }>
  /** Returns true if an input with this id has been sent. */
  knows(id: string): Promise<boolean>
  pending(): Promise<Input[]>
  edit(id: string, edit: InputEdit): Promise<Input>
  withdraw(id: string): Promise<Input>
  /** Withdraws all pending inputs that are not being delivered, and returns them. */
  clear(): Promise<Input[]>
  /** Pauses all pending inputs until `resume` is called or an input is sent. */
  pause(): Promise<void>
  /** Resumes the delivery of paused inputs. */
  resume(): Promise<void>
  /** Returns true if a pending input can start a run. */
  hasNext(): Promise<boolean>
  /**
   * Reserves inputs for delivery and returns them. Reserved inputs can no longer change. `steer` selects the inputs for
   * the next step of a run, and `next` the inputs that start the next run. Only the holder of the session's lease may
   * call this method.
   */
  claim(which: "steer" | "next"): Promise<Input[]>
  /**
   * Returns a claimed input in its state after delivery. The claim ends when the caller stores this state together with
   * the message.
   */
  promoted(input: Input, messageID: string): Input
  /** Ends the claims of inputs that were not delivered. If `problem` is set, also holds these inputs. */
  release(problem?: string): Promise<void>
}

/** Creates the input queue for a session. */
export function createInputQueue({
  store,
  bus,
  sessionID,
  holder,
  lease = () => undefined,
  dispatch,
}: {
  store: Store
  bus: Bus
  sessionID: string
  holder: LeaseHolder
  /** Returns the lease of the current run, which is required for claims. */
  lease?: () => Lease | undefined
  /**
   * Requests a worker for an admitted input. The request is part of the input's transaction if the store supports this.
   */
  dispatch?: Dispatch
}): InputQueue {
  /** Ids of the inputs in the latest claim. A claimed input is still pending until it is promoted. */
  const claimed = new Set<string>()

  async function update(
    named: string | undefined,
    decide: (current: CurrentInputs) => readonly Input[],
    options?: UpdateInputsOptions,
  ): Promise<Input[]> {
    const stored = await store.updateInputs(sessionID, named, decide, options)
    for (const { input, seq } of stored) bus.publish({ ...eventOf({ kind: "input", input }), seq })
    return stored.map(({ input }) => input)
  }

  /**
   * Returns true if an engine is delivering the input. Ignores the claim of an engine that no longer holds the lease.
   */
  const isClaimed = (input: Input, { holder: present }: CurrentInputs) =>
    input.claimedBy !== undefined && input.claimedBy === present?.id

  /** Returns the pending input. Throws if the input is unknown, no longer pending, or being delivered. */
  function changeable(id: string, current: CurrentInputs): Input {
    const { named } = current
    if (!named) throw new UsageError(`Session ${sessionID} has no input ${id}.`, undefined, "input.unknown")
    if (named.state !== "pending" || isClaimed(named, current)) throw new InputEndedError(named)
    return named
  }

  function withdrawn(input: Input): Input {
    const { files: _, ...rest } = input
    return { ...rest, state: "withdrawn", time: { ...input.time, ended: currentTime() } }
  }

  return {
    async admit(text, { id = newId("inp"), delivery = "steer", files = [], command }) {
      checkContent(id, text, files)
      const digest = digestOf({ text, delivery, files, command })
      let known: Input | undefined
      const decide = ({ pending, named }: CurrentInputs) => {
        known = named
        if (named && named.digest !== digest) throw new InputConflictError(id)
        if (named) return []
        const input: Input = {
          id,
          sessionID,
          seq: 0,
          delivery,
          state: "pending",
          position: (pending.at(-1)?.position ?? 0) + 1,
          text,
          ...(files.length > 0 && { files: [...files] }),
          ...(command && { command: { ...command } }),
          digest,
          time: { created: currentTime() },
        }
        return [...pending.flatMap(unpaused), input]
      }
      const changed = await update(id, decide, {
        also: dispatch && ((query) => dispatch({ key: sessionID, id, reason: "input" }, query)),
      })
      const input = known ?? changed.find((each) => each.id === id)
      if (!input) throw new Error(`The store did not return the input ${id}.`)
      return { input, isNew: known === undefined }
    },
    async knows(id) {
      let isKnown = false
      await update(id, ({ named }) => {
        isKnown = named !== undefined
        return []
      })
      return isKnown
    },
    pending: () => store.inputs(sessionID),
    async edit(id, edit) {
      const changed = await update(id, (current) => {
        const edited = withEdit(changeable(id, current), edit)
        checkContent(id, edited.text, edited.files ?? [])
        return edit.position === undefined ? [edited] : moved(edited, edit.position, current.pending)
      })
      return theOne(changed, id)
    },
    async withdraw(id) {
      return theOne(await update(id, (current) => [withdrawn(changeable(id, current))]), id)
    },
    clear: () =>
      update(undefined, (current) =>
        current.pending.filter((input) => !isClaimed(input, current)).map(withdrawn),
      ),
    async pause() {
      await update(undefined, ({ pending }) =>
        pending.filter(({ paused }) => !paused).map((input) => ({ ...input, paused: true })),
      )
    },
    async resume() {
      await update(undefined, ({ pending }) => pending.flatMap(unpaused))
    },
    async hasNext() {
      return choose(await store.inputs(sessionID), "next").length > 0
    },
    async claim(which) {
      // Most steps have no waiting input, and a read is cheaper than a transaction.
      const waiting = choose(await store.inputs(sessionID), which)
      if (waiting.length === 0) return []
      // `Store.reserve` may have claimed the inputs together with the lease. They do not change during the lease.
      if (waiting.every(({ claimedBy }) => claimedBy === holder.id)) {
        claimed.clear()
        for (const { id } of waiting) claimed.add(id)
        return waiting
      }
      const chosen = await update(
        undefined,
        ({ pending }) => choose(pending, which).map((input) => ({ ...input, claimedBy: holder.id })),
        { lease: lease() },
      )
      // The inputs of earlier claims have been promoted by now.
      claimed.clear()
      for (const { id } of chosen) claimed.add(id)
      return chosen
    },
    promoted(input, messageID) {
      const { files: _, claimedBy: __, ...rest } = input
      return { ...rest, state: "promoted", messageID, time: { ...input.time, ended: currentTime() } }
    },
    async release(problem) {
      if (claimed.size === 0) return
      await update(
        undefined,
        ({ pending }) =>
          pending
            .filter(({ id }) => claimed.has(id))
            .map(({ claimedBy: _, ...input }) =>
              problem === undefined ? input : { ...input, held: true as const, problem },
            ),
        { lease: lease() },
      )
      claimed.clear()
    },
  }
}

/**
 * Selects the inputs to deliver together. Omits held and paused inputs. A step in a run receives the steering inputs. A
 * run starts with the urgent and steering inputs, or else with one queued input. An input with a command is delivered
 * alone, at the start of a run, because a command may choose the agent and the model. Inputs after it wait.
 */
export function choose(pending: readonly Input[], which: "steer" | "next"): Input[] {
  const ready = pending.filter(({ held, paused }) => !held && !paused)
  const steering = ready.filter(({ delivery }) => delivery === "steer")
  if (which === "steer") return untilCommand(steering)
  const first = [...ready.filter(({ delivery }) => delivery === "now"), ...steering]
  if (first[0]?.command) return first.slice(0, 1)
  if (first.length > 0) return untilCommand(first)
  return ready.slice(0, 1)
}

function untilCommand(inputs: Input[]): Input[] {
  const end = inputs.findIndex(({ command }) => command)
  return end < 0 ? inputs : inputs.slice(0, end)
}

/** Returns the input without its pause, as a list that is empty if the input was not paused. */
function unpaused({ paused, ...input }: Input): Input[] {
  return paused ? [input] : []
}

function withEdit(input: Input, { text, command, files, delivery, held }: InputEdit): Input {
  const { held: wasHeld, problem, command: before, ...rest } = input
  const isHeld = held ?? wasHeld
  const calls = text === undefined ? before : command
  return {
    ...rest,
    ...(text !== undefined && { text }),
    ...(calls && { command: { ...calls } }),
    ...(files && { files: [...files] }),
    ...(delivery && { delivery }),
    ...(isHeld && { held: true as const }),
    // The reason explains why the input is held.
    ...(isHeld && problem !== undefined && { problem }),
  }
}

/** Returns the input at its new position, and the other inputs whose positions change. */
function moved(input: Input, place: number, pending: readonly Input[]): Input[] {
  const order = pending.filter(({ id }) => id !== input.id)
  order.splice(Math.max(0, place), 0, input)
  return order.flatMap((each, index) => {
    const position = index + 1
    return each.position === position && each.id !== input.id ? [] : [{ ...each, position }]
  })
}

function theOne(changed: readonly Input[], id: string): Input {
  const input = changed.find((each) => each.id === id)
  if (!input) throw new Error(`The store did not return the input ${id}.`)
  return input
}

const idPattern = /^[\w.:-]{1,200}$/

function checkContent(id: string, text: string, files: readonly PromptFile[]): void {
  if (!idPattern.test(id))
    throw new UsageError(
      `The input id ${JSON.stringify(id)} is not valid. Use 1 to 200 letters, digits, "_", "-", "." or ":".`,
      undefined,
      "input.id",
    )
  if (text.trim() === "" && files.length === 0)
    throw new UsageError("The input is empty. Send text or a file.", undefined, "input.empty")
}

function digestOf(content: unknown): string {
  // Loaded on demand, because many engines receive no input.
  const { createHash } = process.getBuiltinModule("node:crypto")
  return createHash("sha256").update(JSON.stringify(content)).digest("hex")
}
