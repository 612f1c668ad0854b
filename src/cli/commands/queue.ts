import { type Command, Option } from "commander"
import { Delivery, type Input } from "../../schema/input.ts"
import type { InputEdit, InputQueue } from "../../session/inputs.ts"
import { UsageError } from "../../util/errors.ts"
import { counted } from "../../util/words.ts"
import { oneLine } from "../../view/visible.ts"
import { printHint, printJson, printLine } from "../process/stdout.ts"
import { openQueue, otherProcess } from "../run/deliver.ts"
import { type ForegroundFlags, inForeground } from "../run/foreground.ts"
import { defaultModel, readPrompt } from "../run/task.ts"
import { style } from "../view/style.ts"
import { withStore, withTackle } from "../workspace/engine.ts"
import { type FormatFlags, openWorkspace } from "../workspace/workspace.ts"
import { foregroundFlags, formatFlag, jsonFlag, locationFlags, positive, projectFlags } from "./flags.ts"
import { commandOf, storedSession } from "./run.ts"
import { printNotRun, runInputs } from "./send.ts"

/** Defines `tackle queue` and its subcommands. */
export function defineQueue(queue: Command): void {
  const base = (command: Command) =>
    command.option("-s, --session <id>", "session id (default: latest session in this project)")
  const simple = (name: string) =>
    base(locationFlags(queue.command(name)))
      .addOption(formatFlag())
      .addOption(jsonFlag())
  base(locationFlags(queue.command("list", { isDefault: true })))
    .description("list the inputs that have not been delivered yet")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(listInputs)
  base(projectFlags(queue.command("edit")))
    .description("replace the text of an input, or change its delivery")
    .argument("<input>", "input id")
    .argument("[text...]", 'the new text; "-" reads stdin')
    .addOption(
      new Option("--delivery <when>", "when to deliver the input, as in `tackle send`").choices(
        Delivery.options,
      ),
    )
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(editInput)
  simple("move")
    .description("move an input to another position")
    .argument("<input>", "input id")
    .argument("<position>", "new position, starting at 1", positive)
    .action((id: string, position: number, flags: QueueFlags) =>
      changeInputs([id], flags, (inputs) => inputs.edit(id, { position: position - 1 })),
    )
  for (const [name, description, held] of [
    ["hold", "hold inputs, so that they are not delivered until you release them", true],
    ["release", "release held inputs", false],
  ] as const) {
    simple(name)
      .description(description)
      .argument("<input...>", "input ids")
      .action((ids: string[], flags: QueueFlags) =>
        changeInputs(ids, flags, (inputs, id) => inputs.edit(id, { held })),
      )
  }
  simple("withdraw")
    .description("withdraw inputs that have not been delivered yet")
    .argument("[input...]", "input ids")
    .option("--all", "withdraw all pending inputs in the session")
    .action(withdrawInputs)
  foregroundFlags(base(projectFlags(queue.command("resume"))))
    .description("deliver pending inputs, even if an interrupt paused the queue")
    .action(resumeQueue)
}

/** Flags for `tackle queue`. The default session is the latest session in the project. */
export interface QueueFlags extends FormatFlags {
  session?: string
}

/** Flags for `tackle queue edit`. */
export interface QueueEditFlags extends QueueFlags {
  delivery?: Delivery
}

/** Runs `tackle queue list`. */
export async function listInputs(flags: QueueFlags): Promise<void> {
  await withStore(flags, async (tackle) => {
    const { id: sessionID } = await storedSession(tackle, flags.session)
    const inputs = await openQueue(tackle, sessionID).pending()
    if (flags.format === "json") return printJson({ sessionID, inputs })
    if (inputs.length === 0) return printLine(`${sessionID} has no pending inputs.`)
    printLine(style.dim(`session ${sessionID}`))
    for (const [index, input] of inputs.entries()) printInput(input, index + 1)
    if (inputs.some(({ paused }) => paused))
      printHint(`The queue is paused. To continue: tackle queue resume -s ${sessionID}`)
  })
}

function printInput({ id, delivery, text, files = [], held, paused, problem }: Input, number: number): void {
  const state = [
    delivery,
    ...(held ? ["held"] : []),
    ...(paused ? ["paused"] : []),
    ...(files.length > 0 ? [counted(files.length, "file")] : []),
  ].join(", ")
  const start = `${number}  ${id}  ${state}  `
  const room = process.stdout.isTTY ? process.stdout.columns - start.length : Number.POSITIVE_INFINITY
  printLine(`${start}${oneLine(text, room)}`)
  if (problem !== undefined) printLine(`   ✗ ${oneLine(problem, Number.POSITIVE_INFINITY)}`)
}

/** Runs `tackle queue edit <input> [text...]`. */
export async function editInput(id: string, words: readonly string[], flags: QueueEditFlags): Promise<void> {
  const edit: InputEdit = { delivery: flags.delivery }
  if (words.length > 0) edit.text = await readPrompt(words, 'tackle queue edit inp_0mwq "use tabs"')
  else if (!flags.delivery) throw new UsageError("Write the new text after the id, or use --delivery.")
  if (edit.text?.startsWith("/")) edit.command = await readCommand(edit.text, flags)
  await changeInputs([id], flags, (inputs) => inputs.edit(id, edit))
}

/**
 * Returns the command that a text calls, or undefined if it calls none. Loads the project's config and tools, because
 * the project can define commands.
 */
async function readCommand(prompt: string, flags: QueueFlags): Promise<InputEdit["command"]> {
  return withTackle(await openWorkspace(flags), (tackle) =>
    commandOf({ prompt }, tackle, new AbortController().signal),
  )
}

/** Changes inputs one by one and prints their new state. */
async function changeInputs(
  ids: readonly string[],
  flags: QueueFlags,
  change: (inputs: InputQueue, id: string) => Promise<Input>,
): Promise<void> {
  await withStore(flags, async (tackle) => {
    const { id: sessionID } = await storedSession(tackle, flags.session)
    const inputs = openQueue(tackle, sessionID)
    const changed: Input[] = []
    for (const id of ids) changed.push(await change(inputs, id))
    if (flags.format === "json") return printJson({ sessionID, inputs: changed })
    const pending = await inputs.pending()
    for (const input of changed) {
      const index = pending.findIndex(({ id }) => id === input.id)
      if (index >= 0) printInput(input, index + 1)
      else
        printLine(input.state === "withdrawn" ? `Withdrew ${input.id}.` : `${input.id} has been delivered.`)
    }
    const isReady = changed.some(({ state, held, paused }) => state === "pending" && !held && !paused)
    if (isReady && !(await otherProcess(tackle, sessionID)))
      printHint(`The session is idle. To deliver its inputs: tackle queue resume -s ${sessionID}`)
  })
}

/** Runs `tackle queue withdraw [input...]`. */
export async function withdrawInputs(
  ids: readonly string[],
  flags: QueueFlags & { all?: boolean },
): Promise<void> {
  if (!flags.all) {
    if (ids.length === 0) throw new UsageError("Pass the ids of the inputs to withdraw, or --all.")
    return changeInputs(ids, flags, (inputs, id) => inputs.withdraw(id))
  }
  if (ids.length > 0) throw new UsageError("Pass either input ids or --all, not both.")
  await withStore(flags, async (tackle) => {
    const { id: sessionID } = await storedSession(tackle, flags.session)
    const inputs = await openQueue(tackle, sessionID).clear()
    if (flags.format === "json") return printJson({ sessionID, inputs })
    printLine(`Withdrew ${counted(inputs.length, "input")} from ${sessionID}.`)
  })
}

/** Runs `tackle queue resume`: resumes the queue, and runs the session if it is idle. */
export async function resumeQueue(flags: ForegroundFlags & QueueFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  const overrides = { model: await defaultModel(workspace) }
  await inForeground({ flags, rules: flags, workspace, overrides }, async (foreground) => {
    const { tackle } = foreground
    const session = await storedSession(tackle, flags.session)
    const inputs = openQueue(tackle, session.id)
    await inputs.resume()
    const other = await otherProcess(tackle, session.id)
    if (!other && (await inputs.hasNext())) return runInputs(session, { ...foreground, flags })
    if (flags.format === "text") printNotRun(session.id, other)
    return 0
  })
}
