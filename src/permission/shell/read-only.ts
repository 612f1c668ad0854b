import { showsContents } from "./git-contents.ts"
import { type ScannedArguments, scanArguments } from "./options.ts"
import type { PlannedCommand, ShellPlan } from "./plan.ts"
import { readOnlyGit } from "./read-only-git.ts"
import type { ReadOnlyProgram } from "./read-only-program.ts"
import { readOnlyTools } from "./read-only-tools.ts"
import type { Word } from "./words.ts"

/** What a command that is proved to only read gives to read. */
export interface Proof {
  /** Operands that may name files. */
  files: Word[]
  /** It reads what lies in the directories among them, or in its own where none is named. `hidden`: also dot files. */
  recursive?: { hidden: boolean }
  /** It is git: it has to run with the hardened environment. */
  git: boolean
  /** It is git and shows what stands in files, any that it tracks. */
  showsTracked?: boolean
}

/**
 * The proof that a command writes nothing, starts nothing and asks no network, or nothing where the table cannot give
 * one: every option has to be known, every word but `$HOME` and `$PWD` at a word's start literal, and the program named
 * by a plain name. What it reads is judged as `read`.
 */
export function proveReadOnly(command: PlannedCommand): Proof | undefined {
  const [program, ...words] = command.argv
  if (!program || command.opaque !== undefined || command.assigns || command.wrapped) return undefined
  if (command.argv.some((word) => word.dynamic || word.glob)) return undefined
  if (program.text === "git") return proveGit(words)
  return prove(programs.get(program.text), words)
}

/** True for a text of nothing but proved commands, with git among them: only such a text has git allowed by proof. */
export function needsHardenedGit(plan: ShellPlan): boolean {
  const proofs = plan.commands.map(proveReadOnly)
  return (
    plan.opaque === undefined && !plan.garbled && proofs.every(Boolean) && proofs.some((proof) => proof?.git)
  )
}

/** True for programs whose file operands are only ever read, whatever their options: {@link risksOf} knows those that write. */
export function isReader(name: string): boolean {
  const program = programs.get(name)
  return program !== undefined && !program.mayWrite
}

/** True for programs whose operands are no files. */
export function takesText(name: string): boolean {
  return isReader(name) && programs.get(name)?.operands === "text"
}

/**
 * The words that may name files: the operands where all options of the program are known, without the pattern of
 * `grep`; else every word.
 */
export function fileOperands(name: string, words: readonly Word[]): readonly Word[] {
  const program = programs.get(name)
  const scan = program && scanArguments(words, program)
  if (!scan || scan.unknown || program.mayWrite) return words
  return program.operands === "pattern, then files" && !givesPattern(scan)
    ? scan.operands.slice(1)
    : scan.operands
}

const text = (options: string): ReadOnlyProgram => ({ options, operands: "text" })

const programs: ReadonlyMap<string, ReadOnlyProgram> = new Map<string, ReadOnlyProgram>([
  ...readOnlyTools,
  ["true", text("")],
  ["pwd", text("-L -P")],
  ["whoami", { ...text(""), maxOperands: 0 }],
  ["uname", text("-a -s -n -r -v -m -p -i -o --all")],
  ["which", text("-a --all")],
  ["basename", text("-a -s: -z --multiple --suffix= --zero")],
  ["dirname", text("-z --zero")],
  ["echo", text("-n -e -E")],
  [
    "date",
    {
      ...text("-u -R -I? -d: --utc --universal --date= --iso-8601? --rfc-3339= --rfc-email"),
      operand: /^\+/,
    },
  ],
  ["cd", { options: "", operands: "files", maxOperands: 1 }],
  [
    "ls",
    {
      options:
        "-1 -A -B -C -F -G -H -L -N -Q -R -S -U -X -Z -a -b -c -d -f -g -h -i -k -l -m -n -o -p -q -r -s -t -u -v -x -I: -T: -w: --all --almost-all --author --classify? --color? --directory --full-time --group-directories-first --hide= --human-readable --ignore= --indicator-style= --inode --no-group --numeric-uid-gid --recursive --reverse --show-control-chars --si --size --sort= --time= --time-style= --width=",
      operands: "files",
    },
  ],
  [
    "cat",
    {
      options:
        "-A -E -T -b -e -n -s -t -u -v --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs --squeeze-blank",
      operands: "files",
    },
  ],
  [
    "head",
    {
      options: "-c: -n: -q -v -z --bytes= --lines= --quiet --silent --verbose",
      operands: "files",
      numbers: true,
    },
  ],
  [
    "tail",
    {
      options: "-c: -n: -q -r -v -z --bytes= --lines= --quiet --silent --verbose",
      operands: "files",
      numbers: true,
    },
  ],
  ["wc", { options: "-L -c -l -m -w --bytes --chars --lines --max-line-length --words", operands: "files" }],
  [
    "sort",
    {
      options:
        "-C -M -R -V -b -c -d -f -g -h -i -k: -n -r -s -t: -u -z --check? --dictionary-order --field-separator= --general-numeric-sort --human-numeric-sort --ignore-case --ignore-leading-blanks --key= --month-sort --numeric-sort --reverse --stable --unique --version-sort --zero-terminated",
      operands: "files",
    },
  ],
  [
    "uniq",
    {
      options:
        "-D -c -d -f: -i -s: -u -w: -z --check-chars= --count --ignore-case --repeated --skip-chars= --skip-fields= --unique --zero-terminated",
      operands: "files",
      maxOperands: 1,
      // Where options end at the first operand, an option behind it is the file that is written.
      stopsAtOperand: true,
    },
  ],
  [
    "stat",
    { options: "-L -c: -f -t -x --dereference --file-system --format= --printf= --terse", operands: "files" },
  ],
  [
    "du",
    {
      options:
        "-0 -H -L -P -S -a -b -c -d: -h -k -l -m -s -t: -x --all --apparent-size --block-size= --bytes --exclude= --human-readable --max-depth= --one-file-system --si --summarize --threshold= --total",
      operands: "files",
    },
  ],
  [
    "tree",
    {
      options:
        "-A -C -D -F -I: -J -L: -N -P: -Q -S -X -a -d -f -g -h -i -n -p -r -s -t -u -v --dirsfirst --du --filelimit= --gitignore --ignore-case --matchdirs --noreport --prune --si",
      operands: "files",
    },
  ],
  [
    "diff",
    {
      options:
        "-B -C: -E -N -U: -W: -Z -a -b -c -d -e -i -n -p -q -s -t -u -w -y --brief --color? --context? --ignore-all-space --ignore-blank-lines --ignore-case --ignore-space-change --minimal --new-file --report-identical-files --side-by-side --strip-trailing-cr --suppress-common-lines --text --unified? --width=",
      operands: "files",
      recursive: "always",
    },
  ],
  [
    "grep",
    {
      options:
        "-A: -B: -C: -E -F -G -H -I -L -P -T -Z -a -b -c -e: -h -i -l -m: -n -o -q -r -s -v -w -x -z --after-context= --basic-regexp --before-context= --binary-files= --color? --colour? --context= --count --exclude-dir= --exclude= --extended-regexp --files-with-matches --files-without-match --fixed-strings --ignore-case --include= --invert-match --line-number --line-regexp --max-count= --no-filename --no-messages --null --only-matching --perl-regexp --quiet --recursive --regexp= --silent --text --with-filename --word-regexp",
      operands: "pattern, then files",
      recursive: ["-r", "--recursive"],
      numbers: true,
    },
  ],
  [
    "rg",
    {
      options:
        "-A: -B: -C: -F -H -I -M: -N -P -S -T: -U -c -d: -e: -g: -i -l -m: -n -o -p -q -r: -s -t: -v -w -x -. --after-context= --before-context= --case-sensitive --color= --column --context= --count --count-matches --files --files-with-matches --files-without-match --fixed-strings --glob= --heading --hidden --ignore-case --iglob= --invert-match --json --line-number --line-regexp --max-columns= --max-count= --max-depth= --multiline --multiline-dotall --no-filename --no-heading --no-line-number --no-messages --only-matching --pcre2 --pretty --quiet --regexp= --replace= --smart-case --sort= --sortr= --stats --trim --type= --type-list --type-not= --vimgrep --with-filename --word-regexp",
      operands: "pattern, then files",
      recursive: "always",
      hidden: ["-.", "--hidden"],
    },
  ],
  [
    "find",
    {
      options:
        "-H -L -P -O1 -O2 -O3 -a -and -amin= -anewer= -atime= -cmin= -cnewer= -ctime= -daystart -depth -empty -executable -false -follow -gid= -group= -iname= -inum= -ipath= -iregex= -links= -ls -maxdepth= -mindepth= -mmin= -mount -mtime= -name= -newer= -newermt= -nogroup -not -nouser -o -or -path= -perm= -print -print0 -printf= -prune -quit -readable -regex= -regextype= -samefile= -size= -true -type= -uid= -user= -writable -xdev -xtype=",
      operands: "files",
      singleDash: true,
      neutral: ["(", ")", "!", ","],
    },
  ],
])

function prove(program: ReadOnlyProgram | undefined, words: readonly Word[]): Proof | undefined {
  if (!program) return undefined
  const scan = scanArguments(words, program)
  // `echo` prints what it does not know as an option.
  if (scan.unknown)
    return program.operands === "text" && program === programs.get("echo")
      ? { files: [], git: false }
      : undefined
  const { maxOperands = Number.POSITIVE_INFINITY, operand, first, requires, neutral = [] } = program
  if (scan.operands.length > maxOperands) return undefined
  if (first && !(scan.operands[0] && first.test(scan.operands[0].text))) return undefined
  if (requires && !scan.options.some(({ name }) => requires.includes(name))) return undefined
  if (operand && !scan.operands.every((word) => operand.test(word.text))) return undefined
  if (program.operands === "text") return { files: [], git: false }

  const skipped = program.operands === "pattern, then files" && !givesPattern(scan) ? 1 : 0
  const files = scan.operands.slice(skipped).filter((word) => !neutral.includes(word.text))
  const uses = (names: readonly string[]) => scan.options.some((option) => names.includes(option.name))
  const { recursive, hidden } = program
  if (recursive === undefined || (recursive !== "always" && !uses(recursive))) return { files, git: false }
  return { files, recursive: { hidden: hidden === undefined || uses(hidden) }, git: false }
}

function givesPattern(scan: ScannedArguments): boolean {
  return scan.options.some(({ name }) => ["-e", "--regexp", "--files", "--type-list"].includes(name))
}

const gitDiffOptions =
  "-M? -C? -D -R -S: -G: -U: -W -a -b -p -q -s -u -w -z --abbrev? --binary --cached --check --color? --compact-summary --diff-algorithm= --diff-filter= --dirstat? --exit-code --find-copies? --find-renames? --full-index --function-context --histogram --ignore-all-space --ignore-blank-lines --ignore-space-at-eol --ignore-space-change --inter-hunk-context= --merge-base --minimal --name-only --name-status --no-color --no-ext-diff --no-patch --no-prefix --no-renames --no-textconv --numstat --patch --patch-with-stat --patience --pickaxe-all --pickaxe-regex --quiet --raw --relative? --shortstat --staged --stat? --summary --text --unified= --word-diff? --word-diff-regex="

const gitLogOptions = `${gitDiffOptions} -E -F -L: -c -g -i -m -n: -t --abbrev-commit --after= --all --all-match --ancestry-path --author= --author-date-order --before= --boundary --branches? --cc --cherry-mark --cherry-pick --children --committer= --date-order --date= --decorate? --decorate-refs= --extended-regexp --first-parent --fixed-strings --follow --format= --full-history --graph --grep= --invert-grep --left-right --max-count= --merges --min-parents= --max-parents= --no-abbrev-commit --no-decorate --no-expand-tabs --no-merges --no-notes --not --oneline --parents --perl-regexp --pretty? --regexp-ignore-case --relative-date --remotes? --reverse --right-only --left-only --since= --skip= --source --tags? --topo-order --until= --walk-reflogs`

function withoutU(options: string): string {
  return options.replace(" -u ", " ")
}

/** Subcommands that only read, with the options that keep it so. `branch` names no branch: that would make one. */
const gitSubcommands: ReadonlyMap<string, ReadOnlyProgram> = new Map<string, ReadOnlyProgram>([
  ...readOnlyGit,
  [
    "status",
    {
      options:
        "-b -s -u? -v -z --ahead-behind --branch --column? --find-renames? --ignored? --long --no-ahead-behind --no-renames --porcelain? --renames --short --show-stash --untracked-files? --verbose",
      operands: "files",
    },
  ],
  ["log", { options: gitLogOptions, operands: "files", numbers: true }],
  ["show", { options: gitLogOptions, operands: "files", numbers: true }],
  ["diff", { options: gitDiffOptions, operands: "files", numbers: true }],
  // Its `-u` means files that git does not track.
  ["stash show", { options: withoutU(gitDiffOptions), operands: "text", maxOperands: 1, numbers: true }],
  ["stash list", { options: gitLogOptions, operands: "text", maxOperands: 0, numbers: true }],
  [
    "branch",
    {
      options:
        "-a -r -v -vv --abbrev? --all --color? --column? --contains= --format= --ignore-case --merged? --no-color --no-column --no-contains= --no-merged? --points-at= --remotes --show-current --sort= --verbose",
      operands: "text",
      maxOperands: 0,
    },
  ],
  [
    "rev-parse",
    {
      options:
        "-q --abbrev-ref? --absolute-git-dir --all --branches? --git-common-dir --git-dir --is-bare-repository --is-inside-git-dir --is-inside-work-tree --is-shallow-repository --quiet --remotes? --short? --show-cdup --show-prefix --show-superproject-working-tree --show-toplevel --symbolic --symbolic-full-name --tags? --verify",
      operands: "files",
    },
  ],
])

function proveGit(words: readonly Word[]): Proof | undefined {
  const global = scanArguments(words, {
    options: "-P --no-pager --no-optional-locks",
    stopsAtOperand: true,
  })
  const [subcommand, ...rest] = global.operands
  if (global.unknown || !subcommand) return undefined
  // Some have subcommands of their own, which are words and nothing behind a `--`.
  const inner = gitSubcommands.get(`${subcommand.text} ${rest[0]?.text}`)
  const proof = prove(inner ?? gitSubcommands.get(subcommand.text), inner ? rest.slice(1) : rest)
  if (!proof) return undefined
  // `HEAD:name` and `:name` are files of a commit or the index.
  const named = proof.files.filter((word) => word.text.includes(":"))
  const inside = named.map((word) => ({ ...word, text: word.text.slice(word.text.indexOf(":") + 1) }))
  return { ...proof, files: [...proof.files, ...inside], git: true, showsTracked: showsContents(words) }
}
