import { type GivenOption, readArguments } from "./arguments.ts"
import type { Program, Wrapping } from "./program.ts"
import { findProgram, findVersioned, gnuName } from "./program-table.ts"
import { inputName, literalWord, unknownWord, type Word } from "./words.ts"

/**
 * A command that a program runs.
 *
 * - `argv`: the words of the command. `moved` means that the command may start in another directory.
 * - `shell`: a command text that a shell runs.
 * - `uncertain`: an unknown command.
 * - `among`: a command that starts at one of the words.
 */
export type Inner =
  | { kind: "argv"; argv: Word[]; moved: boolean; assignments: Word[] }
  | { kind: "shell"; text: string }
  | { kind: "uncertain"; reason: string }
  | { kind: "among"; words: readonly Word[] }

/** Returns the commands that a command runs according to its arguments. */
export function innerCommands(called: string, words: readonly Word[]): Inner[] {
  const name = gnuName(called)
  const { wraps, runsAfter } = findVersioned(name.startsWith("ld-") ? "ld.so" : name) ?? {}
  if (wraps === "unknown") return [uncertainty(`the arguments of ${name} do not name the command it runs`)]
  if (wraps === "shell") return fromShell(name, words)
  if (wraps === "find") return fromFind(words)
  if (wraps === "fd") return fromFd(words)
  if (wraps) return fromWrapper(name, words, wraps)
  return runsAfter === undefined ? [] : fromRunner(runsAfter, words)
}

/** Returns true if the command is allowed whenever a rule allows its inner command. */
export function isTransparent(name: string, [first]: readonly Word[]): boolean {
  const transparent = findProgram(gnuName(name))?.transparent
  return transparent === "without options" ? !first?.text.startsWith("-") : transparent === "always"
}

/** Returns the options that belong to a wrapper itself, not to its inner command. */
export function wrapperOptions([program, ...words]: readonly Word[]): GivenOption[] {
  const wraps = findProgram(gnuName(program?.text ?? ""))?.wraps
  return typeof wraps === "object" ? readArguments(words, asProgram(wraps)).options : []
}

/** Returns the inner command, which starts somewhere after one of the words in `runsAfter`. */
function fromRunner(runsAfter: string, words: readonly Word[]): Inner[] {
  if (runsAfter === "") return [{ kind: "among", words }]
  const marks = runsAfter.split("|")
  const operandAfter = (index: number) =>
    words.find(({ text }, at) => at > index && !text.startsWith("-"))?.text
  const at = words.findIndex(({ text }, index) =>
    marks.some(
      (mark) => mark === text || (mark.startsWith(`${text} `) && mark === `${text} ${operandAfter(index)}`),
    ),
  )
  return at === -1 ? [] : [{ kind: "among", words: words.slice(at + 1) }]
}

const asPrograms = new WeakMap<Wrapping, Program>()

/** Returns a table entry that describes only the wrapper's own arguments. */
function asProgram(wrapping: Wrapping): Program {
  const known = asPrograms.get(wrapping)
  if (known) return known
  const { options, numbers } = wrapping
  const program: Program = { readOnly: options, numbers, stopsAtOperand: true }
  asPrograms.set(wrapping, program)
  return program
}

function fromWrapper(name: string, words: readonly Word[], wrapper: Wrapping): Inner[] {
  const split = wrapper.splits ? splitString(words) : undefined
  if (split !== undefined)
    return [uncertainty(`${name} splits a string into arguments`), { kind: "shell", text: split }]
  const { options, operands, unknown } = readArguments(words, asProgram(wrapper))
  if (unknown) return [uncertainty(`the option ${unknown.text} of ${name} is unknown`)]
  if (options.some((option) => wrapper.looksUp?.includes(option.name))) return []
  let rest = operands.slice(wrapper.operands ?? 0)
  if (operands.slice(0, wrapper.operands ?? 0).some((word) => word.splits)) {
    return [uncertainty(`the arguments of ${name} are known only at run time`)]
  }
  const assignments: Word[] = []
  while (wrapper.assigns && rest[0]?.text.includes("=")) {
    if (!/^[A-Za-z_]\w*=/.test(rest[0].text))
      return [uncertainty(`the effect of ${rest[0].text} on ${name} is unclear`)]
    assignments.push(rest[0])
    rest = rest.slice(1)
  }
  const appended = { ...unknownWord("…"), fromInput: true }
  if (rest.length === 0) return wrapper.appends ? [argv([literalWord("echo"), appended])] : []
  const moved = options.some((option) => wrapper.moves?.includes(option.name))
  const placeholders = options
    .filter((option) => wrapper.replaces?.includes(option.name))
    .map(({ value }) => value?.text ?? "{}")
  const filled = rest.map((word) =>
    placeholders.some((name) => word.text.includes(name))
      ? { ...word, span: "*", dynamic: true, fromInput: placeholders.includes(word.text) }
      : word,
  )
  return [{ ...argv(wrapper.appends ? [...filled, appended] : filled), moved, assignments }]
}

/**
 * Returns the value of `env -S` in any spelling, followed by the remaining words. `env` splits this text almost like a
 * shell.
 */
function splitString(words: readonly Word[]): string | undefined {
  for (const [index, { text }] of words.entries()) {
    const [, attached] = /^(?:-[A-Za-z0]*?S|--s[a-z-]*(?:=|$))(.*)$/s.exec(text) ?? []
    if (attached === undefined) continue
    const [value = "", ...rest] = [
      ...(attached === "" ? [] : [attached]),
      ...words.slice(index + 1).map((word) => word.text),
    ]
    return [value, ...rest].join(" ")
  }
  return undefined
}

/**
 * Returns the command text of `sh -c`. Accepts only options that do not change which commands run. The name of a script
 * counts as an ordinary operand.
 */
function fromShell(name: string, words: readonly Word[]): Inner[] {
  let index = 0
  let command = false
  for (; index < words.length; index++) {
    const text = words[index]?.text ?? ""
    if (!/^[-+]/.test(text)) break
    if (text === "-o" && words[index + 1]?.text === "pipefail") index += 1
    else if (/^-[euxflc]+$/.test(text)) command ||= text.includes("c")
    else return [uncertainty(`the option ${text} of ${name} is unknown`)]
  }
  const operand = words[index]
  if (!operand || (!command && inputName.test(operand.text)))
    return [uncertainty(`${name} runs its input as commands`)]
  if (operand.dynamic || operand.glob || operand.base !== undefined) {
    return [uncertainty(`the command that ${name} runs is known only at run time`)]
  }
  return command ? [{ kind: "shell", text: operand.text }] : []
}

const findActions = new Set(["-exec", "-execdir", "-ok", "-okdir"])

function fromFind(words: readonly Word[]): Inner[] {
  const found: Inner[] = []
  for (let index = 0; index < words.length; index++) {
    const action = words[index]?.text ?? ""
    if (!findActions.has(action)) continue
    const from = index + 1
    index = findEnd(words, from)
    const inner = words
      .slice(from, index)
      .map((word) => (word.text.includes("{}") ? unknownFile(word) : word))
    found.push(
      index < words.length
        ? { ...argv(inner), moved: action.endsWith("dir") }
        : uncertainty(`${action} is not terminated`),
    )
  }
  return found
}

/** Returns the index of the word that ends a command that `find` runs, or the number of words if no word ends it. */
export function findEnd(words: readonly Word[], from: number): number {
  const isEnd = (text: string, index: number) =>
    text === ";" || (text === "+" && words[index - 1]?.text === "{}")
  const end = words.findIndex(({ text }, index) => index > from && isEnd(text, index))
  return end === -1 ? words.length : end
}

function fromFd(words: readonly Word[]): Inner[] {
  const at = words.findIndex((word) => /^(?:-[A-Za-z]*[xX]|--exec|--exec-batch)$/.test(word.text))
  if (at !== -1) {
    const end = words.findIndex((word, index) => index > at && word.text === ";")
    const inner = words.slice(at + 1, end === -1 ? undefined : end)
    return [{ ...argv([...inner, unknownWord("…")]), moved: false }]
  }
  const attached = words.find((word) => /^(?:-[A-Za-z]*[xX].|--exec)/.test(word.text))
  return attached ? [uncertainty(`the command in fd's option ${attached.text} cannot be checked`)] : []
}

/**
 * Returns a word that `find` builds from a file name. The word never starts with a dash, because each name starts with
 * the path given to `find`.
 */
function unknownFile(word: Word): Word {
  const fromInput = word.text === "{}" || undefined
  return { ...word, span: word.span.replaceAll("{}", "*"), dynamic: true, contained: true, fromInput }
}

function argv(words: Word[]): Extract<Inner, { kind: "argv" }> {
  return { kind: "argv", argv: words, moved: false, assignments: [] }
}

function uncertainty(reason: string): Extract<Inner, { kind: "uncertain" }> {
  return { kind: "uncertain", reason }
}
