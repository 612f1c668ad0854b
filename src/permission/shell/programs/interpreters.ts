import type { Program, ProgramTable } from "../program.ts"
import { version } from "./version.ts"

const python: Program = {
  risks: "-c",
  valued: "-W -X",
  stopsAtOperand: true,
  stopsAfter: "-m",
  fromInput: "-V -VV --version -h --help --help-env --help-xoptions --help-all",
  remember: "exact",
}

const node: Program = {
  writes:
    "--redirect-warnings --cpu-prof-dir --cpu-prof-name --heap-prof-dir --heap-prof-name --diagnostic-dir --report-dir|--report-directory --report-filename --trace-event-file-pattern --tls-keylog --localstorage-file --test-reporter-destination",
  risks:
    "-e|--eval -p|--print -r|--require --import --loader|--experimental-loader --env-file --env-file-if-exists --experimental-config-file --experimental-default-config-file --openssl-config --test-reporter --test-global-setup --snapshot-blob --build-snapshot --build-snapshot-config --experimental-sea-config",
  valued: "-C",
  whole: true,
  stopsAtOperand: true,
  fromInput: "-v --version -h --help --test --run --v8-options --completion-bash",
  remember: "exact",
}

/** Programs that run code, including editors and databases that can run code. */
export const interpreters: ProgramTable = [
  ["python python3", { ...python, readOnly: version("-V --version") }],
  ["python2 pypy pypy3", python],
  ["node", { ...node, readOnly: version("-v --version") }],
  ["nodejs ts-node", node],
  ["tsx", { ...node, runsAfter: "" }],
  [
    "bun",
    {
      risks: "-e|--eval -p|--print -r|--preload|--require --import --config",
      stopsAtOperand: true,
      whole: true,
      runsAfter: "exec|x|dlx",
      remember: 2,
      longer: "run",
    },
  ],
  ["deno", { risks: "", subcommands: {}, riskySubcommands: "eval repl", remember: 2, longer: "task" }],
  [
    "perl",
    {
      inPlace: "-i",
      risks: "-e -E -M -m -d -I -x -F",
      stopsAtOperand: true,
      fromInput: "-v -V -h -?",
      readOnly: version("--version"),
      remember: "exact",
    },
  ],
  [
    "ruby",
    {
      inPlace: "-i",
      risks: "-e -r|--require -I -x -C",
      valued: "-E",
      stopsAtOperand: true,
      fromInput: "-v --version -h --help --copyright",
      readOnly: version("--version"),
      remember: "exact",
    },
  ],
  [
    "php",
    {
      risks:
        "-r|--run -B|--process-begin -R|--process-code -E|--process-end -F|--process-file -d|--define -c|--php-ini -z|--zend-extension",
      stopsAtOperand: true,
      fromInput: "-v --version -h --help -i --info -m --modules -S --server -l --syntax-check --ini",
      remember: "exact",
    },
  ],
  [
    "lua luajit lua5.1 lua5.3 lua5.4",
    { risks: "-e -l -i", stopsAtOperand: true, fromInput: "-v", remember: "exact" },
  ],
  ["R Rscript", { risks: "-e|--eval -f|--file", stopsAtOperand: true }],
  ["julia", { risks: "-e|--eval -E|--print -L|--load", stopsAtOperand: true }],
  ["elixir iex", { risks: "-e|--eval --rpc-eval -r|--require -S", stopsAtOperand: true }],
  ["erl", { risks: "-eval -s -run -boot -config", singleDash: true }],
  ["ghc runghc", { writes: "-o*", risks: "-e -pgm* -F -fplugin -package-db", singleDash: true }],
  ["osascript groovy scala gnuplot", { risks: "-e", stopsAtOperand: true, remember: "exact" }],
  ["guile", { risks: "-c -e -l -ds -x -L -C", stopsAtOperand: true, fromInput: "-v --version -h --help" }],
  [
    "ocaml",
    { risks: "-e -init -I", singleDash: true, stopsAtOperand: true, fromInput: "-version -vnum -help" },
  ],
  [
    "rake",
    { risks: "-e|--execute -p|--execute-print -E|--execute-continue -r|--require -I|--libdir", remember: 2 },
  ],
  [
    "tex latex pdftex pdflatex xelatex lualatex",
    { risks: "-shell-escape -enable-write18", singleDash: true },
  ],
  ["octave", { risks: "--eval --persist" }],
  ["dc", { risks: "-e|--expression -f|--file" }],
  [
    "java",
    {
      risks: "-javaagent -agentlib -agentpath -XX -Xlog -Xbootclasspath",
      singleDash: true,
      operand: /^(?!@)/,
      readOnly: version("--version"),
    },
  ],
  [
    "vim vi nvim view gvim vimdiff rvim",
    {
      writes: "-w -W --startuptime",
      risks: "-c --cmd -S -s -u -U -i -V --remote-expr --remote-send -l",
      operand: /^(?!\+)/,
      operands: "changes",
    },
  ],
  [
    "emacs emacsclient",
    {
      risks: "-l -load -f -funcall -eval -execute -script -insert -batch -L -directory -u -user",
      singleDash: true,
      operand: /^(?!\+)/,
    },
  ],
  [
    "sqlite3",
    {
      risks: "-cmd -init -A*",
      singleDash: true,
      // Allows only dot commands that print. Excludes functions and statements that use other files.
      operand:
        /^(?!\s*\.(?!(?:tables|schema|indexes|databases|mode|headers?|dump)\b))(?!.*(?:writefile|readfile|load_extension|edit|attach|vacuum)\b)/is,
    },
  ],
  [
    "psql",
    {
      writes: "-o|--output -L|--log-file",
      risks: "-c|--command -f|--file -v|--set|--variable",
      valued: "-h -p -U -d",
    },
  ],
  [
    "mysql mariadb",
    {
      writes: "--tee",
      risks: "-e|--execute --pager --init-command --plugin-dir --defaults-file --defaults-extra-file",
    },
  ],
]
