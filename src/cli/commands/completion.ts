import { Argument, type Command, type Option } from "commander"
import { printLine } from "../process/stdout.ts"

const shells = ["bash", "zsh", "fish"] as const

/** Scripts, keyed by shell. Each calls `tackle completion words -- …` with the words up to the cursor. */
const scripts: Readonly<Record<(typeof shells)[number], string>> = {
  bash: `_tackle() {
  local IFS=$'\\n'
  COMPREPLY=($(tackle completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _tackle tackle`,
  zsh: `#compdef tackle
_tackle() {
  local -a found
  found=(\${(f)"$(tackle completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -a found; else _files; fi
}
compdef _tackle tackle`,
  fish: `complete -c tackle -a '(tackle completion words -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'`,
}

/** Defines `tackle completion <shell>`. `createProgram` returns the program with all commands. */
export function defineCompletion(completion: Command, createProgram: () => Promise<Command>): void {
  completion
    .usage("[options] <shell>")
    .addArgument(new Argument("<shell>", "bash, zsh or fish").choices([...shells, "words"]))
    .argument("[words...]", 'words to complete, after the argument "words"')
    .action(async (shell: (typeof shells)[number] | "words", words: string[]) => {
      if (shell !== "words") return printLine(scripts[shell])
      for (const candidate of candidates(await createProgram(), words)) printLine(candidate)
    })
}

/**
 * Returns the completions for the last word: commands, flags, or the choices for a flag or argument. Returns an empty
 * list where a file or other text is expected.
 */
function candidates(program: Command, words: readonly string[]): string[] {
  const current = words.at(-1) ?? ""
  let command = program
  let flag: Option | undefined
  for (const word of words.slice(0, -1)) {
    const isValue = flag !== undefined
    flag = isValue
      ? undefined
      : flagsOf(command).find((option) => [option.long, option.short].includes(word) && takesValue(option))
    if (!isValue) command = command.commands.find((inner) => inner.name() === word) ?? command
  }
  return offered(command, { flag, current }).filter((candidate) => candidate.startsWith(current))
}

function offered(
  command: Command,
  { flag, current }: { flag: Option | undefined; current: string },
): string[] {
  if (flag) return flag.argChoices ?? []
  if (current.startsWith("-")) return [...flagsOf(command).flatMap(({ long }) => long ?? []), "--help"]
  const names = command.commands.map((inner) => inner.name())
  if (names.length > 0) return names
  return (command.registeredArguments[0]?.argChoices ?? []).filter((choice) => choice !== "words")
}

/**
 * Returns the flags of a command and its parents. For example, `tackle models check` accepts those of `tackle models`.
 */
function flagsOf(command: Command): Option[] {
  const own = command.options.filter(({ hidden, long }) => !hidden && long !== "--version")
  return command.parent ? [...own, ...flagsOf(command.parent)] : own
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional
}
