import { mayBeOption } from "./options.ts"
import type { Word } from "./words.ts"

/** What is risky about a program whose wildcard rule would otherwise cover all of its options. */
interface RiskyProgram {
  /** Options that run a program or write a named file, the names of one joined by `|`. */
  options?: string
  /** Options that take a value, so that it is not taken for an option, an operand or a subcommand. */
  valued?: string
  /** Options with one dash are words, as with `find`. */
  singleDash?: boolean
  /** The first word is a bundle of short options even without a dash, as with `tar`. */
  leadingBundle?: boolean
  /** Operands of the kind that is a program of its own: plain ones pass, all others are risky. */
  script?: { plain: RegExp; options?: readonly string[] }
  /** Every operand has to look like this. */
  operand?: RegExp
  /** Subcommands that are risky as a whole, and what is risky about single ones. */
  riskySubcommands?: string
  subcommands?: Readonly<Record<string, RiskyProgram>>
}

/**
 * The groups of names of which a rule has to contain one each before it allows the command: for every option that runs
 * a program or writes a named file, in whatever spelling. A group without names can only be allowed by `*`.
 */
export function risksOf(name: string, words: readonly Word[]): string[][] {
  const program = programs.get(name)
  return program ? risksIn(program, words) : []
}

/** True if the rule's pattern names one of the group, as a word of its own. */
export function namesRisk(pattern: string, group: readonly string[]): boolean {
  const words = pattern.split(/[\s*?=]+/)
  return group.some((name) => words.includes(name) || (name.includes(" ") && pattern.includes(name)))
}

/** A script that only prints parts of its input: no function calls, pipes, redirections or strings made of commands. */
const plainAwk = /^(?!.*(?:system|getline|close|@|\\\n))[^|>`]*$/s

const addresses = String.raw`(?:(?:\d+|\$|/[^/\\\n]*/)(?:,(?:\+?\d+|\$|/[^/\\\n]*/))?)?`

/** One `s` command without the flags `e` and `w`, or `p`, `d`, `q`, `=`: with addresses in front. */
const plainSed = new RegExp(
  String.raw`^${addresses}(?:[pdq=]|s([/|#,:!@%])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI\d]*)$`,
)

const awk: RiskyProgram = {
  options:
    "-f|--file -i|--include -l|--load -E|--exec -o|--pretty-print -p|--profile -d|--dump-variables -D|--debug",
  valued: "-F -v",
  script: { plain: plainAwk, options: ["-e", "--source"] },
}

const transfer = "-u|--upload-pack --exec --receive-pack"

const programs: ReadonlyMap<string, RiskyProgram> = new Map<string, RiskyProgram>([
  [
    "rg",
    { options: "--pre --hostname-bin -z|--search-zip", valued: "-e -f -g -t -T -A -B -C -m -M -d -r -E -j" },
  ],
  ["sort", { options: "-o|--output --compress-program", valued: "-k -t -S -T" }],
  ["find", { options: "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls", singleDash: true }],
  ["fd", { options: "-x|--exec -X|--exec-batch", valued: "-e -t -d -E -c -j -S -o" }],
  ["fdfind", { options: "-x|--exec -X|--exec-batch", valued: "-e -t -d -E -c -j -S -o" }],
  [
    "sed",
    {
      options: "-i|--in-place -f|--file -I",
      valued: "-e -l",
      script: { plain: plainSed, options: ["-e", "--expression"] },
    },
  ],
  [
    "tar",
    {
      options:
        "--checkpoint-action --to-command -I|--use-compress-program --rsh-command --rmt-command -F|--info-script|--new-volume-script --index-file --volno-file",
      valued: "-f -C -T -X -b -g -H -L -N -V -K",
      leadingBundle: true,
    },
  ],
  ["awk", awk],
  ["gawk", awk],
  ["mawk", awk],
  ["nawk", awk],
  ["date", { options: "-s|--set", valued: "-d -f -r", operand: /^\+/ }],
  ["hostname", { options: "-F|--file -b|--boot", operand: /^$/ }],
  ["uniq", { options: "", valued: "-f -s -w" }],
  [
    "curl",
    {
      options:
        "-o|--output -O|--remote-name -K|--config -D|--dump-header -c|--cookie-jar --trace --trace-ascii --stderr --output-dir --engine",
    },
  ],
  [
    "wget",
    {
      options:
        "-O|--output-document -o|--output-file -a|--append-output -P|--directory-prefix -e|--execute --use-askpass --config --save-cookies",
    },
  ],
  ["rsync", { options: "-e|--rsh --rsync-path --log-file --write-batch" }],
  ["ssh", { options: "-o -F -E" }],
  ["scp", { options: "-o -F -S -D" }],
  [
    "less",
    {
      options: "-o|-O|--log-file|--LOG-FILE -k|--lesskey-file|--lesskey-src|--lesskey-content -T|--tag-file",
      valued: "-b -h -j -p -P -t -x -y -z",
      // `+` begins a command of its own, which may be one for a shell.
      operand: /^(?!\+)/,
    },
  ],
  ["man", { options: "-P|--pager -H|--html -C|--config-file", valued: "-M -s -S -e -L -m -p -r -R" }],
  ["zip", { options: "-T|--test -TT|--unzip-command" }],
  ["split", { options: "--filter" }],
  ["docker", { options: "-H|--host -c|--context --config" }],
  [
    "git",
    {
      options:
        "-c --config-env --exec-path --git-dir -p|--paginate --output --ext-diff --textconv --open-files-in-pager",
      valued: "-C -c --git-dir --work-tree --namespace --super-prefix",
      riskySubcommands:
        "config difftool mergetool filter-branch bisect submodule daemon send-email instaweb credential hook maintenance p4 svn cvsserver remote-ext fast-import",
      subcommands: {
        clone: { options: `-c|--config --template ${transfer}`, valued: "-b -o -j" },
        fetch: { options: "--upload-pack" },
        pull: { options: "--upload-pack" },
        push: { options: "--exec --receive-pack", valued: "-o" },
        "ls-remote": { options: "--upload-pack --exec" },
        apply: { options: "--unsafe-paths" },
        archive: { options: "-o|--output --exec --remote" },
        rebase: { options: "-x|--exec", valued: "-s -X -C" },
        grep: { options: "-O|--open-files-in-pager", valued: "-e -f -A -B -C -m" },
        init: { options: "--template" },
        bundle: { options: "--output" },
        "format-patch": { options: "-o|--output-directory" },
        commit: { options: "", valued: "-m -F -C -c -t" },
        tag: { options: "", valued: "-m -F -u" },
      },
    },
  ],
])

function risksIn(program: RiskyProgram, words: readonly Word[]): string[][] {
  const risks: string[][] = []
  const groups = (program.options ?? "")
    .split(/\s+/)
    .filter(Boolean)
    .map((group) => group.split("|"))
  const valued = new Set((program.valued ?? "").split(/\s+/))
  const operands: Word[] = []

  for (let index = 0; index < words.length; index++) {
    const word = words[index]
    if (!word) break
    if (word.text === "--" && !program.singleDash) {
      operands.push(...words.slice(index + 1))
      break
    }
    if (mayBeOption(word) && (word.dynamic || word.glob)) {
      risks.push([])
      continue
    }
    const bundle = index === 0 && program.leadingBundle === true && !word.text.startsWith("-")
    if (!bundle && (!word.text.startsWith("-") || word.text === "-")) {
      const subcommand = program.subcommands && operands.length === 0
      operands.push(word)
      if (!subcommand) continue
      const rest = words.slice(index + 1)
      const own =
        program.subcommands && Object.hasOwn(program.subcommands, word.text)
          ? program.subcommands[word.text]
          : undefined
      if (program.riskySubcommands?.split(" ").includes(word.text)) risks.push([word.text])
      // Options before the subcommand have short forms of their own; only the long ones hold after it as well.
      const general = groups
        .map((group) => group.filter((option) => option.startsWith("--")).join("|"))
        .filter(Boolean)
      const options = [...general, own?.options ?? ""].join(" ")
      return [...risks, ...risksIn({ ...own, options }, rest)]
    }
    const text = bundle ? `-${word.text}` : word.text
    const found = riskyNames(text, groups, valued, program.singleDash === true)
    if (found) risks.push([...found, word.text])
    if (program.script?.options?.some((option) => carriesScript(text, option))) {
      const value = scriptIn(text, words[index + 1])
      if (!value || value.dynamic || !program.script.plain.test(value.text))
        risks.push(value ? [value.text] : [])
    }
    if (takesNext(text, valued, program.singleDash === true)) index += 1
  }

  const given = words.some((word) =>
    program.script?.options?.some((option) => carriesScript(word.text, option)),
  )
  const script = given ? undefined : operands[0]
  if (program.script && script && (script.dynamic || !program.script.plain.test(script.text)))
    risks.push([script.text])
  const { operand } = program
  if (operand) for (const word of operands) if (!operand.test(word.text)) risks.push([word.text])
  return risks
}

/** The names of the risky option that a word is or may be: abbreviated, with its value attached, within a bundle. */
function riskyNames(
  text: string,
  groups: readonly string[][],
  valued: ReadonlySet<string>,
  singleDash: boolean,
): string[] | undefined {
  const name = text.split("=", 1)[0] ?? text
  if (singleDash) return groups.find((group) => group.includes(name))
  if (text.startsWith("--")) {
    return groups.find((group) => group.some((option) => option.startsWith("--") && option.startsWith(name)))
  }
  if (groups.some((group) => group.includes(name))) return groups.find((group) => group.includes(name))
  for (const letter of text.slice(1)) {
    const found = groups.find((group) => group.includes(`-${letter}`))
    if (found) return found
    if (valued.has(`-${letter}`)) return undefined
  }
  return undefined
}

/** True where the last letter of a bundle takes its value from the next word. */
function takesNext(text: string, valued: ReadonlySet<string>, singleDash: boolean): boolean {
  if (singleDash) return false
  if (text.startsWith("--")) return valued.has(text)
  const at = [...text.slice(1)].findIndex((letter) => valued.has(`-${letter}`))
  return at !== -1 && at === text.length - 2
}

function carriesScript(text: string, option: string): boolean {
  if (option.startsWith("--"))
    return text.length > 2 && text.startsWith("--") && option.startsWith(text.split("=", 1)[0] ?? text)
  return !text.startsWith("--") && text.startsWith("-") && text.includes(option.slice(1))
}

function scriptIn(text: string, next: Word | undefined): Word | undefined {
  const attached = text.startsWith("--")
    ? text.split("=").slice(1).join("=")
    : text.slice(text.indexOf("e") + 1)
  if (attached === "") return next
  return { text: attached, span: attached, dynamic: false, splits: false, glob: false, substitutions: [] }
}
