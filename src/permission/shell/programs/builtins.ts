import type { ProgramTable } from "../program.ts"

/** Shell builtins. */
export const builtins: ProgramTable = [
  ["true false exit return break continue", { operands: "text", readOnly: "" }],
  ["echo", { operands: "text", readOnly: "-n -e -E" }],
  [
    "printf",
    {
      operands: "text",
      readOnly: {
        options: "",
        operand: /^[^`$]*$/,
        first: /^(?!-)[^%]*(?:%(?:%|[-+ #0]*\d*(?:\.\d+)?[sdiuxXoc])[^%]*)*$/,
      },
      builtin: printfWord,
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
      builtin: conditionWord,
    },
  ],
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
  ["set", { operands: "text", readOnly: "-e -u -x -o", builtin: setWord }],
  ["wait", { builtin: waitWord }],
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

/** Returns false for `-v` and `%n`, because `printf` then evaluates a name. */
function printfWord(text: string): boolean {
  return !text.startsWith("-v") && !/%[^%\sa-z]*n/.test(text) && !evaluatesSubscript(text)
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
