import type { Program, ProgramTable } from "../program.ts"

const python: Program = {
  risks: "-c",
  valued: "-W -X",
  stopsAtOperand: true,
  stopsAt: /^-[bBdEhiIOPqRsSuvVx]*m/,
  input: { unless: "-V -VV --version -h --help --help-env --help-xoptions --help-all", with: "-i" },
  modules:
    "asyncio bdb bpython cProfile code codeop coverage doctest idlelib ipython IPython pdb profile ptpython pudb pyinstrument runpy scalene sqlite3 timeit trace viztracer xonsh",
  remember: "exact",
}

/** Matches an operand that is not a `data:` URL, because a `data:` URL can contain a program. */
const notData = /^(?!data:)/i

const node: Program = {
  writes:
    "--redirect-warnings --cpu-prof-dir --cpu-prof-name --heap-prof-dir --heap-prof-name --diagnostic-dir --report-dir|--report-directory --report-filename --trace-event-file-pattern --tls-keylog --localstorage-file --test-reporter-destination",
  risks:
    "-e|--eval -p|--print -r|--require --import --loader|--experimental-loader --env-file --env-file-if-exists --experimental-config-file --experimental-default-config-file --openssl-config --test-reporter --test-global-setup --entry-url --experimental-entry-url --snapshot-blob --build-snapshot --build-snapshot-config --experimental-sea-config",
  valued: "-C",
  operand: notData,
  whole: true,
  stopsAtOperand: true,
  input: {
    unless: "-v --version -h --help --test --run --v8-options --completion-bash",
    with: "-i --interactive inspect debug",
  },
  remember: "exact",
}

const otherLanguage: Program = {
  risks: "-e|--eval -D|--define",
  stopsAtOperand: true,
  input: { unless: "-v -V --version -h --help" },
  remember: "exact",
}

/** Programs that run code, including editors and databases that can run code. */
export const interpreters: ProgramTable = [
  ["python python3", { ...python, version: "-V --version" }],
  ["python2 pypy pypy3", python],
  ["node", { ...node, version: "-v --version" }],
  ["nodejs ts-node", node],
  ["tsx", { ...node, runsAfter: "" }],
  [
    "bun",
    {
      version: "-v --version",
      risks: "-e|--eval -p|--print -r|--preload|--require --import --config",
      operand: notData,
      stopsAtOperand: true,
      input: { unless: "-v --version --revision -h --help", after: "run" },
      whole: true,
      runsAfter: "exec|x|dlx",
      remember: 2,
      longer: "run",
    },
  ],
  [
    "deno",
    {
      version: "-V --version",
      risks: "",
      operand: notData,
      subcommands: {},
      riskySubcommands: "eval repl",
      actions: {
        fmt: { operands: "changes", spreads: { unlessOperands: true }, dryRun: "--check" },
        lint: { rewrites: "--fix" },
      },
      input: { unless: "-V --version -h --help", with: "repl", after: "run serve test bench" },
      remember: 2,
      exact: "run serve install",
      longer: "task",
    },
  ],
  [
    "perl",
    {
      inPlace: "-i",
      risks: "-e -E -M -m -d -I -x -F",
      stopsAtOperand: true,
      input: { unless: "-v -V -h -?" },
      version: "-v -V --version",
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
      input: { unless: "-v --version -h --help --copyright" },
      version: "-v --version",
      remember: "exact",
    },
  ],
  [
    "php",
    {
      risks:
        "-r|--run -B|--process-begin -R|--process-code -E|--process-end -F|--process-file -d|--define -c|--php-ini -z|--zend-extension",
      stopsAtOperand: true,
      input: {
        unless: "-v --version -h --help -i --info -m --modules -S --server -l --syntax-check --ini",
        with: "-a --interactive",
      },
      remember: "exact",
    },
  ],
  [
    "lua luajit lua5.1 lua5.3 lua5.4",
    { risks: "-e -l -i", stopsAtOperand: true, input: { unless: "-v", with: "-i" }, remember: "exact" },
  ],
  [
    "R",
    {
      risks: "-e|--eval -f|--file",
      stopsAtOperand: true,
      input: { always: true, unless: "-e -f --file --version --help" },
    },
  ],
  [
    "Rscript r",
    { risks: "-e|--eval -f|--file", stopsAtOperand: true, input: { unless: "--version --help" } },
  ],
  [
    "julia",
    {
      risks: "-e|--eval -E|--print -L|--load",
      stopsAtOperand: true,
      input: { unless: "-v --version -h --help", with: "-i" },
    },
  ],
  [
    "elixir",
    {
      risks: "-e|--eval --rpc-eval -r|--require -S",
      stopsAtOperand: true,
      input: { unless: "-v --version --help" },
    },
  ],
  ["iex", { risks: "-e|--eval --rpc-eval -r|--require -S", stopsAtOperand: true, input: { always: true } }],
  [
    "erl",
    { risks: "-eval -s -run -boot -config", singleDash: true, input: { always: true, unless: "-noinput" } },
  ],
  ["ghc", { writes: "-o*", risks: "-e -pgm* -F -fplugin -package-db", singleDash: true }],
  [
    "runghc runhaskell",
    { risks: "-e -pgm* -F -fplugin -package-db", singleDash: true, stopsAtOperand: true, input: {} },
  ],
  [
    "osascript groovy scala kotlin kotlinc gnuplot m4 coffee lsc esno vite-node zx racket raku perl6",
    otherLanguage,
  ],
  [
    "crystal",
    {
      ...otherLanguage,
      actions: {
        "tool format": { operands: "changes", spreads: { unlessOperands: true }, dryRun: "--check" },
      },
    },
  ],
  // These programs read commands from their input even after they have run a file.
  [
    "irb pry ghci swipl prolog gprolog sbcl clisp ecl ccl csi scheme mit-scheme gforth jshell groovysh clj clojure bb ipython ipython3 bpython ptpython micropython jython qjs d8 jsc js rhino maxima gp gap sage scilab scilab-cli wolframscript matlab jimsh newlisp pil janet fennel hy io pike evcxr cling root rexx regina",
    {
      risks:
        "-e|--eval|--execute -c|--command -f|--file -g|--goal -i|--init -l|--load -r|--require|--run -x --batch-string",
      input: { always: true },
      remember: "exact",
    },
  ],
  [
    "guile",
    { risks: "-c -e -l -ds -x -L -C", stopsAtOperand: true, input: { unless: "-v --version -h --help" } },
  ],
  [
    "ocaml",
    {
      risks: "-e -init -I",
      singleDash: true,
      stopsAtOperand: true,
      input: { unless: "-version -vnum -help" },
    },
  ],
  [
    "rake",
    { risks: "-e|--execute -p|--execute-print -E|--execute-continue -r|--require -I|--libdir", remember: 2 },
  ],
  [
    "tex latex pdftex pdflatex xelatex lualatex",
    { risks: "-shell-escape -enable-write18", singleDash: true },
  ],
  ["octave octave-cli", { risks: "--eval --persist", input: { unless: "--eval --version --help" } }],
  [
    "dc",
    {
      risks: "-e|--expression -f|--file",
      input: { unless: "-e --expression -f --file -V --version -h --help" },
    },
  ],
  [
    "java",
    {
      remember: "exact",
      risks: "-javaagent -agentlib -agentpath -XX -Xlog -Xbootclasspath",
      singleDash: true,
      operand: /^(?!@)/,
      version: "-version --version",
    },
  ],
  [
    "vim vi nvim view gvim vimdiff rvim",
    {
      version: "--version",
      writes: "-w -W --startuptime",
      risks: "-c --cmd -S -s -e -E -u -U -i -V --remote-expr --remote-send -l",
      operand: /^(?!\+)/,
      operands: "changes",
      input: { always: true },
    },
  ],
  [
    "emacs emacsclient",
    {
      risks: "-l -load -f -funcall -eval -execute -script -insert -batch -L -directory -u -user -x",
      singleDash: true,
      operand: /^(?!\+)/,
    },
  ],
  [
    "sqlite3",
    {
      version: "-version --version",
      risks: "-cmd -init -A*",
      singleDash: true,
      // Allows only dot commands that print. Excludes functions and statements that use other files.
      operand:
        /^(?!\s*\.(?!(?:tables|schema|indexes|databases|mode|headers?|dump)\b))(?!.*(?:writefile|readfile|load_extension|edit|attach|vacuum)\b)/is,
      input: { always: true },
    },
  ],
  [
    "psql",
    {
      version: "-V --version",
      writes: "-o|--output -L|--log-file",
      risks: "-c|--command -f|--file -v|--set|--variable",
      valued: "-h -p -U -d",
      input: { always: true, unless: "-c --command -f --file -l --list -V --version" },
    },
  ],
  [
    "mysql mariadb",
    {
      writes: "--tee",
      risks: "-e|--execute --pager --init-command --plugin-dir --defaults-file --defaults-extra-file",
      input: { always: true, unless: "-e --execute -V --version" },
    },
  ],
  [
    "duckdb usql pgcli mycli litecli mongosh mongo sqlcmd sqlplus isql cqlsh clickhouse-client cockroach",
    {
      risks:
        "-c|--command -e|--eval|--execute -f|--file -s -i|--init -cmd -init -q|--query -Q|--queries-file",
      input: { always: true },
    },
  ],
]
