import { plainAwk, plainSed } from "./plain-scripts.ts"
import type { ReadOnlyProgram } from "./read-only-program.ts"

const text = (options: string): ReadOnlyProgram => ({ options, operands: "text" })
const files = (options: string): ReadOnlyProgram => ({ options, operands: "files" })
const version = (options: string): ReadOnlyProgram => ({
  ...text(options),
  mayWrite: true,
  maxOperands: 0,
  requires: options.split(" "),
})
const checksum = files("-b -t -z --binary --text --tag --zero")

const condition: ReadOnlyProgram = {
  options:
    "-b -c -d -e -f -g -h -k -L -n -O -G -p -r -s -S -u -w -x -z -a -o -nt -ot -ef -eq -ne -lt -le -gt -ge",
  operands: "files",
  singleDash: true,
  neutral: ["!", "=", "==", "!=", "(", ")", "]"],
}

/** Reads the environment or names files by itself. */
const plainAwkPrint = new RegExp(
  `${/^(?!.*(?:ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB|FUNCTAB))/s.source}${plainAwk.source}`,
  "s",
)

/** A filter that takes its input from the files given and from nowhere else. */
const plainJq = /^(?!.*(?:env|import|include|modulemeta|input_filename|search_list|\\\n))/is

/** Programs beside the basic ones that only read, with the options that keep it so. */
export const readOnlyTools: readonly (readonly [string, ReadOnlyProgram])[] = [
  ["false", text("")],
  ["test", condition],
  ["[", condition],
  ["id", text("-u -g -G -n -r -z --user --group --groups --name")],
  ["nproc", { ...text("--all"), maxOperands: 0 }],
  ["arch", { ...text(""), maxOperands: 0 }],
  ["uptime", { ...text("-p -s --pretty --since"), maxOperands: 0 }],
  // Only waits, and a call has a limit of time.
  ["sleep", { ...text(""), operand: /^\d+(?:\.\d+)?[smhd]?$/ }],
  ["seq", text("-w -s: -f: --equal-width --separator= --format=")],
  ["command", { mayWrite: true, ...text("-v -V"), requires: ["-v", "-V"] }],
  ["type", text("-a -t -p")],
  ["tr", text("-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1")],
  [
    "printf",
    {
      ...text(""),
      operand: /^[^`$]*$/,
      first: /^(?!-)[^%]*(?:%(?:%|[-+ #0]*\d*(?:\.\d+)?[sdiuxXoc])[^%]*)*$/,
    },
  ],
  [
    "realpath",
    files(
      "-e -m -L -P -q -s -z --canonicalize-existing --canonicalize-missing --no-symlinks --relative-to= --relative-base=",
    ),
  ],
  [
    "readlink",
    files("-f -e -m -n -q -s -z --canonicalize --canonicalize-existing --canonicalize-missing --no-newline"),
  ],
  [
    "df",
    files(
      "-a -h -H -i -k -l -m -P -T -t: -x: --all --human-readable --si --inodes --local --print-type --total --type=",
    ),
  ],
  [
    "file",
    files(
      "-b -i -h -L -k -N -r -0 --brief --mime --mime-type --mime-encoding --dereference --no-dereference",
    ),
  ],
  [
    "cut",
    files(
      "-b: -c: -d: -f: -n -s -z --bytes= --characters= --delimiter= --fields= --only-delimited --complement --output-delimiter=",
    ),
  ],
  ["nl", files("-b: -h: -f: -i: -l: -n: -p -s: -v: -w: --body-numbering= --number-width= --number-format=")],
  ["tac", files("-b -r -s: --before --regex --separator=")],
  ["rev", files("")],
  ["cmp", files("-b -i: -l -n: -s --print-bytes --verbose --bytes= --quiet --silent")],
  ["comm", files("-1 -2 -3 -z --check-order --nocheck-order --total --output-delimiter=")],
  ["join", files("-1: -2: -a: -e: -i -j: -o: -t: -v: -z --header")],
  ["paste", files("-d: -s -z --delimiters= --serial")],
  ["fold", files("-b -s -w: --bytes --spaces --width=")],
  ["od", files("-A: -c -d -j: -N: -o -t: -v -w? -x --address-radix= --format= --read-bytes= --skip-bytes=")],
  ["hexdump", files("-b -c -C -d -n: -o -s: -v -x")],
  // `@file` holds further words.
  ["strings", { ...files("-a -n: -t: -e: --all --bytes= --radix= --encoding="), operand: /^(?!@)/ }],
  ["base64", { mayWrite: true, ...files("-d -i -w: --decode --ignore-garbage --wrap=") }],
  ...["md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum"].map(
    (name) => [name, checksum] as const,
  ),
  [
    "jq",
    {
      options:
        "-r -c -n -s -S -e -M -C -j -a -R --raw-output --compact-output --null-input --slurp --sort-keys --exit-status --monochrome-output --color-output --join-output --ascii-output --raw-input --tab --indent:",
      operands: "pattern, then files",
      first: plainJq,
    },
  ],
  [
    "sed",
    {
      mayWrite: true,
      options: "-n -E -r -s -u -z --quiet --silent --regexp-extended",
      operands: "pattern, then files",
      first: plainSed,
    },
  ],
  ["awk", { mayWrite: true, options: "-F: -v:", operands: "pattern, then files", first: plainAwkPrint }],
  ["node", version("-v --version")],
  ...["python3", "python"].map((name) => [name, version("-V --version")] as const),
  ...["gcc", "g++", "clang", "make", "cmake", "java", "perl", "ruby"].map(
    (name) => [name, version("--version")] as const,
  ),
]
