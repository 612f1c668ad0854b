import type { ProgramTable } from "../program.ts"

/** Shell builtins. */
export const builtins: ProgramTable = [
  ["true false", { operands: "text", readOnly: "" }],
  [
    "exit return break continue",
    { operands: "text", readOnly: "", builtin: (words) => words.every(countWord) },
  ],
  ["echo", { operands: "text", prints: true, readOnly: "-n -e -E" }],
  [
    "printf",
    {
      operands: "text",
      readOnly: {
        options: "",
        operand: /^[^`$]*$/,
        first: /^(?!-)[^%]*(?:%(?:%|[-+ #0]*\d*(?:\.\d+)?[sdiuxXoc])[^%]*)*$/,
      },
      builtin: printfWords,
    },
  ],
  ["pwd", { operands: "text", readOnly: "-L -P" }],
  ["cd", { operands: "reads", readOnly: { options: "", maxOperands: 1 } }],
  [
    "test [ [[",
    {
      operands: "names",
      singleDash: true,
      readOnly: {
        options:
          "-b -c -d -e -f -g -h -k -L -n -O -G -p -r -s -S -u -w -x -z -a -o -nt -ot -ef -eq -ne -lt -le -gt -ge",
        neutral: ["!", "=", "==", "!=", "(", ")", "]", "]]"],
      },
      builtin: (words) => words.every(conditionWord),
    },
  ],
  // With an operand, these builtins change the shell.
  ["umask", { operands: "text", readOnly: { options: "-S", maxOperands: 0 } }],
  ["ulimit", { operands: "text", readOnly: { options: "-a", maxOperands: 0, requires: ["-a"] } }],
  ["type", { operands: "text", readOnly: "-a -t -p" }],
  [
    "command",
    {
      readOnly: { options: "-v -V", requires: ["-v", "-V"], operands: "text" },
      wraps: { options: "-p -v -V", looksUp: ["-v", "-V"] },
      remember: "exact",
    },
  ],
  ["builtin", { wraps: { options: "" } }],
  ["exec", { wraps: { options: "-c -l -a:" }, remember: "exact" }],
  ["export", { builtin: "named", operands: "text", remember: "exact" }],
  ["source .", { builtin: "named", operands: "reads", input: {}, remember: "exact" }],
  ["eval", { remember: "exact", builtin: "evaluates" }],
  ["trap fc mapfile readarray compgen", { builtin: "evaluates" }],
  [
    "set",
    {
      operands: "text",
      readOnly: "-e -u -x -o",
      // Without a word, `set` prints all variables.
      builtin: (words) => words.length > 0 && words.every(setWord),
    },
  ],
  ["wait", { builtin: (words) => words.every(waitWord) }],
  [
    "alias unalias enable disable hash bind complete compdef compopt shopt setopt unsetopt emulate autoload functions zmodload let read getopts declare typeset local readonly unset setenv unsetenv integer float vared pushd popd rehash",
    { builtin: "changes" },
  ],
]

/** Returns true for common, harmless words such as `-e`. */
function setWord(text: string): boolean {
  return /^(?:[-+][euxfo]+|pipefail|errexit|nounset)$/.test(text)
}

/** Returns false for `-p`, because `wait -p` evaluates a name. */
function waitWord(text: string): boolean {
  return !/^-[a-z]*p/.test(text)
}

/** Returns true for a number, because zsh evaluates any other word as arithmetic. */
function countWord(text: string): boolean {
  return /^(?:\d+|\$\?)$/.test(text)
}

/**
 * Returns false for `-v` and `%n`, because `printf` then evaluates a name, and for words where zsh's `printf` evaluates
 * arithmetic.
 */
function printfWords(words: readonly string[]): boolean {
  if (words.some((text) => text.startsWith("-v") || /%[^%\sa-z]*n/.test(text) || evaluatesSubscript(text)))
    return false
  const [format = "", ...values] = words[0] === "--" ? words.slice(1) : words
  const types = [...format.matchAll(/%(?:%|[-+ #0'\d.]*([*a-zA-Z]))/g)].flatMap(([, type]) => type ?? [])
  const isText = (index: number) => /^[bcqs]$/.test(types[index % types.length] ?? "s")
  const takesSize = types.includes("*")
  return values.every((value, index) => /^[-+]?[\d.]*$/.test(value) || (isText(index) && !takesSize))
}

/** Returns false for `-v` and `-R`, because `test` then evaluates a name. */
function conditionWord(text: string): boolean {
  return text !== "-v" && text !== "-R" && !evaluatesSubscript(text)
}

/**
 * Returns true if the word may contain an array element whose subscript contains an expansion. A shell evaluates such a
 * subscript where it expects a number.
 */
function evaluatesSubscript(text: string): boolean {
  return /\[.*[$`]/s.test(text)
}
