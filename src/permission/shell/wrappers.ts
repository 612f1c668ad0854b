import { gnuName } from "./gnu-names.ts"
import { type OptionSpec, scanArguments } from "./options.ts"
import { ranWords, uncertainWrappers } from "./runners.ts"
import { literalWord, unknownWord, type Word } from "./words.ts"

/**
 * What a program runs in its turn: another command, a text for a shell, something that cannot be told from the words,
 * or a command that begins somewhere among them. `moved`: the inner command may start in another directory.
 */
export type Inner =
  | { kind: "argv"; argv: Word[]; moved: boolean; assignments: Word[] }
  | { kind: "shell"; text: string }
  | { kind: "uncertain"; reason: string; fromInput?: true }
  | { kind: "among"; words: readonly Word[] }

/** The commands that a command runs, by its words alone. None for ordinary programs. */
export function innerCommands(called: string, words: readonly Word[]): Inner[] {
  const name = gnuName(called)
  if (uncertainWrappers.has(name)) return [uncertainty(`what ${name} runs cannot be told from its words`)]
  if (shells.has(name)) return fromShell(name, words)
  if (name === "find") return fromFind(words)
  if (name === "fd" || name === "fdfind") return fromFd(words)
  const split = name === "env" ? splitString(words) : undefined
  if (split !== undefined) {
    return [uncertainty("env takes its words from a text"), { kind: "shell", text: split }]
  }
  const wrapper = wrappers.get(name.startsWith("ld-") || name === "ld.so" ? "ld.so" : name)
  if (!wrapper) {
    const among = ranWords(name, words)
    return among ? [{ kind: "among", words: among }] : []
  }
  return fromWrapper(name, words, wrapper)
}

interface Wrapper extends OptionSpec {
  /** Operands before the inner command, such as the duration of `timeout`. */
  operands?: number
  /** `NAME=value` words may stand before the inner command. */
  assigns?: boolean
  /** The inner command gets further words that are not known. */
  appends?: boolean
  /** Options with a placeholder for what is not known: wherever it stands in the inner command. */
  replaces?: readonly string[]
  /** With one of these it only looks something up. */
  looksUp?: readonly string[]
  /** Options after which the inner command starts elsewhere. */
  moves?: readonly string[]
}

/** Programs whose words are options of their own and then another command. */
const wrappers: ReadonlyMap<string, Wrapper> = new Map<string, Wrapper>([
  [
    "sudo",
    {
      options: "-n -E -H -S -b -k -u: -g: -p: --user= --group= --non-interactive --preserve-env --set-home",
      assigns: true,
    },
  ],
  ["doas", { options: "-n -u:" }],
  [
    "env",
    {
      options: "-i -0 -u: -C: --ignore-environment --null --unset= --chdir=",
      assigns: true,
      moves: ["-C", "--chdir"],
    },
  ],
  ["nohup", { options: "" }],
  ["setsid", { options: "-c -f -w --ctty --fork --wait" }],
  ["nice", { options: "-n: --adjustment=", numbers: true }],
  ["ionice", { options: "-c: -n: -t --class= --classdata= --ignore" }],
  ["taskset", { options: "-a -c", operands: 1 }],
  [
    "timeout",
    { options: "-k: -s: -v --kill-after= --signal= --verbose --foreground --preserve-status", operands: 1 },
  ],
  ["stdbuf", { options: "-i: -o: -e: --input= --output= --error=" }],
  ["time", { options: "-p -v", assigns: true }],
  ["command", { options: "-p -v -V", looksUp: ["-v", "-V"] }],
  ["builtin", { options: "" }],
  ["exec", { options: "-c -l -a:" }],
  ["coproc", { options: "", assigns: true }],
  ["noglob", { options: "" }],
  ["nocorrect", { options: "" }],
  ["-", { options: "" }],
  ["busybox", { options: "" }],
  ["toybox", { options: "" }],
  ["ld.so", { options: "" }],
  ["caffeinate", { options: "-d -i -m -s -u -t:" }],
  [
    "xargs",
    {
      options:
        "-0 -r -t -p -x -n: -L: -P: -d: -I: -s: -E: -i? -e? -l? --null --no-run-if-empty --verbose --max-args= --max-procs= --max-lines? --delimiter= --replace?",
      appends: true,
      replaces: ["-I", "-i", "--replace"],
    },
  ],
])

const shells = new Set(["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish"])

function fromWrapper(name: string, words: readonly Word[], wrapper: Wrapper): Inner[] {
  const { options, operands, unknown } = scanArguments(words, { ...wrapper, stopsAtOperand: true })
  if (unknown) return [uncertainty(`the option ${unknown.text} of ${name} is not known`)]
  if (options.some((option) => wrapper.looksUp?.includes(option.name))) return []
  let rest = operands.slice(wrapper.operands ?? 0)
  if (operands.slice(0, wrapper.operands ?? 0).some((word) => word.splits)) {
    return [uncertainty(`the words of ${name} are known only when it runs`)]
  }
  const assignments: Word[] = []
  while (wrapper.assigns && rest[0]?.text.includes("=")) {
    if (!/^[A-Za-z_]\w*=/.test(rest[0].text))
      return [uncertainty(`what ${name} makes of ${rest[0].text} is not clear`)]
    assignments.push(rest[0])
    rest = rest.slice(1)
  }
  if (rest.length === 0) return wrapper.appends ? [argv([literalWord("echo"), unknownWord("…")])] : []
  const moved = options.some((option) => wrapper.moves?.includes(option.name))
  const placeholders = options
    .filter((option) => wrapper.replaces?.includes(option.name))
    .map(({ value }) => value?.text ?? "{}")
  const filled = rest.map((word) =>
    placeholders.some((name) => word.text.includes(name)) ? { ...word, span: "*", dynamic: true } : word,
  )
  return [{ ...argv(wrapper.appends ? [...filled, unknownWord("…")] : filled), moved, assignments }]
}

/** The text of `env -S`, in any spelling, with the words behind it. `env` splits it by rules of its own, close to a shell's. */
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

/** `sh -c text`, with the options that change nothing about what is run. A script's name is an ordinary operand. */
function fromShell(name: string, words: readonly Word[]): Inner[] {
  let index = 0
  let command = false
  for (; index < words.length; index++) {
    const text = words[index]?.text ?? ""
    if (!/^[-+]/.test(text)) break
    if (text === "-o" && words[index + 1]?.text === "pipefail") index += 1
    else if (/^-[euxflc]+$/.test(text)) command ||= text.includes("c")
    else return [{ ...uncertainty(`the option ${text} of ${name} is not known`), fromInput: true }]
  }
  const operand = words[index]
  if (!operand) return [{ ...uncertainty(`${name} runs what it reads`), fromInput: true }]
  if (operand.dynamic || operand.glob || operand.base !== undefined) {
    return [uncertainty(`what ${name} runs is known only when it runs`)]
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
    while (index < words.length && !isFindEnd(words, index, from)) index += 1
    const inner = words
      .slice(from, index)
      .map((word) => (word.text.includes("{}") ? unknownFile(word) : word))
    found.push(
      index < words.length
        ? { ...argv(inner), moved: action.endsWith("dir") }
        : uncertainty(`${action} has no end`),
    )
  }
  return found
}

function isFindEnd(words: readonly Word[], index: number, from: number): boolean {
  const text = words[index]?.text
  return index > from && (text === ";" || (text === "+" && words[index - 1]?.text === "{}"))
}

function fromFd(words: readonly Word[]): Inner[] {
  const at = words.findIndex((word) => /^(?:-[A-Za-z]*[xX]|--exec|--exec-batch)$/.test(word.text))
  if (at !== -1) {
    const end = words.findIndex((word, index) => index > at && word.text === ";")
    const inner = words.slice(at + 1, end === -1 ? undefined : end)
    return [{ ...argv([...inner, unknownWord("…")]), moved: false }]
  }
  const attached = words.find((word) => /^(?:-[A-Za-z]*[xX].|--exec)/.test(word.text))
  return attached ? [uncertainty(`the option ${attached.text} of fd is not known`)] : []
}

/** A word that `find` makes from a file's name. It never starts with a dash: the names start with the path given. */
function unknownFile(word: Word): Word {
  return { ...word, span: word.span.replaceAll("{}", "*"), dynamic: true, contained: true }
}

function argv(words: Word[]): Extract<Inner, { kind: "argv" }> {
  return { kind: "argv", argv: words, moved: false, assignments: [] }
}

function uncertainty(reason: string): Extract<Inner, { kind: "uncertain" }> {
  return { kind: "uncertain", reason }
}
