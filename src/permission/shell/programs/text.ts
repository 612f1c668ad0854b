import type { Program, ProgramTable, ScriptTest } from "../program.ts"

/** Accepts awk scripts that cannot run commands, write files, or read anything but their input. */
const plainAwk: ScriptTest = { test: isPlainAwk }

/** Accepts the scripts of {@link plainAwk} that neither use environment variables nor name files. */
const printingAwk: ScriptTest = {
  test: (script) => isPlainAwk(script) && !/ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB|FUNCTAB/.test(script),
}

const tokens =
  /"(?:[^"\\\n]|\\[^\n])*"|[A-Za-z_]\w*|\d[\w.]*|\s+|\/(?:[^/\\\n[\]]|\\[^\n]|\[(?!\^?\])(?:\[:[a-z]+:\]|[^\][\\\n/])+\])+\/|\|\||&&|[<>=!]=|./gsy

/** Tokens after which `/` starts a regular expression. After any other token, `/` could be a division. */
const beforeExpression = /^(?:[{};,(!~]|\|\||&&|print|printf|return|in|else|do)?$/

/**
 * Checks the script token by token. `>` compares in a pattern and within parentheses, but redirects in a `print`
 * statement. Rejects scripts in which `/` could be either a division or the start of a regular expression.
 */
function isPlainAwk(script: string): boolean {
  if (/system|getline|close|fflush|@|`|\\\n|#/.test(script)) return false
  let [parentheses, printing, last] = [0, false, ""]
  for (const [token] of script.matchAll(tokens)) {
    if (/^\s/.test(token)) continue
    if (token[0] === "/" && (token === "/" || !beforeExpression.test(last))) return false
    if (token === '"' || token === "|" || (token === ">" && printing && parentheses === 0)) return false
    if (token === "(") parentheses += 1
    else if (token === ")") parentheses -= 1
    else if (/^[;{}]$/.test(token)) printing = false
    else if (/^printf?$/.test(token)) printing = true
    last = token
  }
  return true
}

/** Accepts the sed commands `p`, `d`, `q`, `=` and `s`, with addresses, and without the flags `e` and `w`. */
const plainSed: ScriptTest = { test: isPlainSed }

/**
 * Matches a bracket expression without the delimiter. In some versions of sed, the delimiter may be part of the bracket
 * expression.
 */
const sedBracket = (delimiter: string) =>
  String.raw`\[(?!\^?\])(?:\[:[a-z]+:\]|(?!${delimiter})[^\][\\\n]|\\[^\]\n])+\]`
const sedPattern = String.raw`/(?:[^/\\\n[]|${sedBracket("/")})*/`
const sedAddress = String.raw`(?:\d+|\$|${sedPattern})(?:,(?:\+?\d+|\$|${sedPattern}))?`
const sedPart = (other: string) => String.raw`(?:(?!\1)${other}|\\[^\n])*\1`
const sedReplaced = sedPart(String.raw`(?:[^\\\n[]|${sedBracket(String.raw`\1`)})`)
const sedCommand = new RegExp(
  String.raw`(?:${sedAddress})?[ \t]*(?:[pdq=]|s([/|#,:!@%])${sedReplaced}${sedPart(String.raw`[^\\\n]`)}[gpiI\d]*)`,
  "y",
)
const sedSeparator = /[ \t]*(?:[;\n][;\s]*|$)/y

/** Checks the commands one by one. One regular expression for all commands could backtrack for minutes. */
function isPlainSed(script: string): boolean {
  let position = script.length - script.trimStart().length
  const skip = (pattern: RegExp) => {
    pattern.lastIndex = position
    const found = pattern.exec(script)
    if (found) position = pattern.lastIndex
    return found !== null
  }
  do if (!skip(sedCommand) || !skip(sedSeparator)) return false
  while (position < script.length)
  return true
}

/** Matches a filter that reads neither environment variables nor files other than its input. */
const plainJq = /^(?!.*(?:env|import|include|modulemeta|input_filename|search_list|\\\n))/is

const awk: Program = {
  inPlace: "-i|--include",
  risks: "-f|--file -l|--load -E|--exec -o|--pretty-print -p|--profile -d|--dump-variables -D|--debug -W",
  valued: "-F -v -i --include",
  script: { plain: plainAwk, options: "-e|--source" },
  remember: "exact",
}

const grep: Program = {
  operands: "pattern",
  numbers: true,
  lists: {
    options:
      "-E -F -G -I -L -P -R -e -i -l -m -r -s -w -x --exclude --exclude-dir --extended-regexp --files-with-matches --files-without-match --fixed-strings --ignore-case --include --perl-regexp --recursive --regexp --word-regexp",
    requires: ["-l", "-L", "--files-with-matches", "--files-without-match"],
  },
  selectsLines:
    "-E -F -G -P -e -i -m -v -w -x --extended-regexp --fixed-strings --ignore-case --invert-match --regexp",
  readOnly:
    "-A: -B: -C: -E -F -G -H -I -L -P -T -Z -a -b -c -e: -h -i -l -m: -n -o -q -r -R -s -v -w -x -z --after-context= --basic-regexp --before-context= --binary-files= --color? --colour? --context= --count --exclude-dir= --exclude= --extended-regexp --files-with-matches --files-without-match --fixed-strings --ignore-case --include= --invert-match --line-number --line-regexp --max-count= --no-filename --no-messages --null --only-matching --perl-regexp --quiet --dereference-recursive --recursive --regexp= --silent --text --with-filename --word-regexp",
  directories: {
    filters: true,
    when: /^-(?:[A-Za-z]*[rR]|-recursive|-dereference-recursive|d)/,
    follows: /^-(?:[A-Za-z]*R|-deref|d)/,
  },
}

/** Programs that search, compare and change text. */
export const textPrograms: ProgramTable = [
  [
    "rg",
    {
      version: "-V --version",
      risks: "--pre --hostname-bin -z|--search-zip",
      valued: "-f -E -j",
      operands: "pattern",
      lists: {
        options:
          "-F -S -e -g -i -l -s -t -w -x -. --files --files-with-matches --files-without-match --fixed-strings --glob --hidden --ignore-case --max-depth --pcre2 --regexp --smart-case --sort --type --type-not --word-regexp",
        requires: ["-l", "--files", "--files-with-matches", "--files-without-match"],
      },
      readOnly: {
        options:
          "-A: -B: -C: -F -H -I -M: -N -P -S -T: -U -c -d: -e: -g: -i -l -m: -n -o -p -q -r: -s -t: -v -w -x -. --after-context= --before-context= --case-sensitive --color= --column --context= --count --count-matches --files --files-with-matches --files-without-match --fixed-strings --glob= --heading --hidden --ignore-case --iglob= --invert-match --json --line-number --line-regexp --max-columns= --max-count= --max-depth= --multiline --multiline-dotall --no-filename --no-heading --no-line-number --no-messages --only-matching --pcre2 --pretty --quiet --regexp= --replace= --smart-case --sort= --sortr= --stats --trim --type= --type-list --type-not= --vimgrep --with-filename --word-regexp",
      },
      directories: { own: true, hidden: ["-.", "--hidden"], unhides: true },
    },
  ],
  ["grep egrep fgrep", grep],
  [
    "zgrep bzgrep xzgrep",
    {
      directories: {
        when: /^-(?:[A-Za-z]*[rR]|-recursive|-dereference-recursive|d)/,
        follows: /^-(?:[A-Za-z]*R|-deref|d)/,
      },
    },
  ],
  ["ugrep", { risks: "--pager --filter --view --save-config --config", directories: { own: true } }],
  ["ug", { risks: "--pager --filter --view --save-config --config" }],
  [
    "ag ack",
    {
      risks: "--pager --output --config-file",
      directories: { own: true, follows: /^-(?:[A-Za-z]*f|-follow)/ },
    },
  ],
  [
    "sed",
    {
      inPlace: "-i|--in-place -I",
      risks: "-f|--file",
      valued: "-e -l",
      script: { plain: plainSed, options: "-e|--expression" },
      readOnly: {
        options: "-n -E -r -s -u -z --quiet --silent --regexp-extended",
        first: plainSed,
        operands: "pattern",
      },
      remember: "exact",
    },
  ],
  ["awk", { ...awk, readOnly: { options: "-F: -v:", first: printingAwk, operands: "pattern" } }],
  ["gawk mawk nawk original-awk goawk", awk],
  [
    "jq",
    {
      version: "-V --version",
      operands: "pattern",
      readOnly: {
        options:
          "-r -c -n -s -S -e -M -C -j -a -R --raw-output --compact-output --null-input --slurp --sort-keys --exit-status --monochrome-output --color-output --join-output --ascii-output --raw-input --tab --indent:",
        first: plainJq,
      },
    },
  ],
  [
    "yq",
    { inPlace: "-i|--inplace|--in-place", risks: "-s|--split-exp --split-exp-file", valued: "-o -p -I" },
  ],
  [
    "sort",
    {
      writes: "-o|--output",
      risks: "--compress-program",
      valued: "-S -T",
      operands: "reads",
      selectsLines: "-V -f -n -r -u --numeric-sort --reverse --unique --version-sort",
      readOnly:
        "-C -M -R -V -b -c -d -f -g -h -i -k: -n -r -s -t: -u -z --check? --dictionary-order --field-separator= --general-numeric-sort --human-numeric-sort --ignore-case --ignore-leading-blanks --key= --month-sort --numeric-sort --reverse --stable --unique --version-sort --zero-terminated",
    },
  ],
  [
    "uniq",
    {
      risks: "",
      maxOperands: 1,
      operands: "reads",
      selectsLines: "-d -u",
      stopsAtOperand: true,
      readOnly: {
        options:
          "-D -c -d -f: -i -s: -u -w: -z --check-chars= --count --ignore-case --repeated --skip-chars= --skip-fields= --unique --zero-terminated",
        maxOperands: 1,
      },
    },
  ],
  ["shuf iconv sdiff", { writes: "-o|--output", risks: "--diff-program", valued: "-n -i -f -t -w -s" }],
  [
    "diff",
    {
      risks: "-l|--paginate",
      valued: "-x -X -I -F -L -S",
      operands: "reads",
      readOnly:
        "-B -C: -E -N -U: -W: -Z -a -b -c -d -e -i -n -p -q -s -t -u -w -y --brief --color? --context? --ignore-all-space --ignore-blank-lines --ignore-case --ignore-space-change --minimal --new-file --report-identical-files --side-by-side --strip-trailing-cr --suppress-common-lines --text --unified? --width=",
      directories: { followsUnless: /^--no-d/ },
    },
  ],
  ["diff3", { risks: "--diff-program" }],
  [
    "comm",
    { operands: "reads", readOnly: "-1 -2 -3 -z --check-order --nocheck-order --total --output-delimiter=" },
  ],
  ["join", { operands: "reads", readOnly: "-1: -2: -a: -e: -i -j: -o: -t: -v: -z --header" }],
  ["paste", { operands: "reads", readOnly: "-d: -s -z --delimiters= --serial" }],
  [
    "cut",
    {
      operands: "reads",
      readOnly:
        "-b: -c: -d: -f: -n -s -z --bytes= --characters= --delimiter= --fields= --only-delimited --complement --output-delimiter=",
    },
  ],
  [
    "tr",
    { operands: "text", readOnly: "-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1" },
  ],
  [
    "nl",
    {
      operands: "reads",
      readOnly: "-b: -h: -f: -i: -l: -n: -p -s: -v: -w: --body-numbering= --number-width= --number-format=",
    },
  ],
  ["expr", { operands: "text", readOnly: "" }],
  ["bc", { operands: "reads", readOnly: "-l -q -s -w --mathlib --quiet --standard --warn" }],
  ["tac", { operands: "reads", readOnly: "-b -r -s: --before --regex --separator=" }],
  ["rev", { operands: "reads", readOnly: "" }],
  ["fold", { operands: "reads", readOnly: "-b -s -w: --bytes --spaces --width=" }],
  ["seq", { operands: "text", readOnly: "-w -s: -f: --equal-width --separator= --format=" }],
  ["bat batcat delta", { risks: "--pager --output --config-file" }],
  [
    "less",
    {
      writes: "-o|-O|--log-file|--LOG-FILE",
      risks: "-k|--lesskey-file|--lesskey-src|--lesskey-content -T|--tag-file",
      valued: "-b -h -j -p -P -t -x -y -z",
      // An operand that starts with `+` is a command for the program, which may run a shell command.
      operand: /^(?!\+)/,
    },
  ],
  ["man", { risks: "-P|--pager -H|--html -C|--config-file", valued: "-M -s -S -e -L -m -p -r -R" }],
  ["info", { writes: "-o|--output --dribble", risks: "--restore --init-file", valued: "-f -n -d -k" }],
  ["fzf sk", { writes: "--history", risks: "--preview --bind", whole: true }],
  [
    "pandoc",
    {
      writes: "-o|--output --extract-media --log",
      risks: "-F|--filter -L|--lua-filter --pdf-engine --pdf-engine-opt --template -d|--defaults --data-dir",
      valued: "-f -r -t -w -V -M",
    },
  ],
  ["xmllint xsltproc", { writes: "-o -output", risks: "-shell -load-trace", singleDash: true }],
]
