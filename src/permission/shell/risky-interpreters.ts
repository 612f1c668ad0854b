import { plainAwk, plainSed } from "./plain-scripts.ts"
import type { RiskyProgram } from "./risky-program.ts"

const awk: RiskyProgram = {
  options:
    "-f|--file -i|--include -l|--load -E|--exec -o|--pretty-print -p|--profile -d|--dump-variables -D|--debug -W",
  valued: "-F -v",
  script: { plain: plainAwk, options: ["-e", "--source"] },
}

const python: RiskyProgram = {
  options: "-c",
  valued: "-W -X",
  stopsAtOperand: true,
  stopsAfter: "-m",
  fromInput: "-V -VV --version -h --help --help-env --help-xoptions --help-all",
}
const node: RiskyProgram = {
  options:
    "-e|--eval -p|--print -r|--require --import --loader|--experimental-loader --env-file --env-file-if-exists --experimental-config-file --experimental-default-config-file --openssl-config --redirect-warnings --cpu-prof-dir --cpu-prof-name --heap-prof-dir --heap-prof-name --diagnostic-dir --report-dir|--report-directory --report-filename --trace-event-file-pattern --tls-keylog --localstorage-file --test-reporter --test-reporter-destination --test-global-setup --snapshot-blob --build-snapshot --build-snapshot-config --experimental-sea-config",
  valued: "-C",
  whole: true,
  stopsAtOperand: true,
  fromInput: "-v --version -h --help --test --run --v8-options --completion-bash",
}
const perl: RiskyProgram = {
  options: "-e -E -i -M -m -d -I -x -F",
  stopsAtOperand: true,
  fromInput: "-v -V -h -?",
}
const ruby: RiskyProgram = {
  options: "-e -r|--require -i -I -x -C",
  valued: "-E",
  stopsAtOperand: true,
  fromInput: "-v --version -h --help --copyright",
}
const lua: RiskyProgram = { options: "-e -l -i", stopsAtOperand: true, fromInput: "-v" }
const vim: RiskyProgram = {
  options: "-c --cmd -S -s -u -U -w -W -i -V --startuptime --remote-expr --remote-send -l",
  operand: /^(?!\+)/,
}
const emacs: RiskyProgram = {
  options: "-l -load -f -funcall -eval -execute -script -insert -batch -L -directory -u -user",
  singleDash: true,
  operand: /^(?!\+)/,
}
const jvm = "-javaagent -agentlib -agentpath -XX -Xlog -Xbootclasspath"

/** Programs that are given a program, in their options or as an operand. */
export const riskyInterpreters: readonly (readonly [string, RiskyProgram])[] = [
  [
    "sed gsed",
    {
      options: "-i|--in-place -f|--file -I",
      valued: "-e -l",
      script: { plain: plainSed, options: ["-e", "--expression"] },
    },
  ],
  ["awk gawk mawk nawk original-awk goawk", awk],
  ["python python2 python3 pypy pypy3", python],
  ["node nodejs tsx ts-node", node],
  [
    "bun",
    {
      options: "-e|--eval -p|--print -r|--preload|--require --import --config",
      stopsAtOperand: true,
      whole: true,
    },
  ],
  ["deno", { options: "", subcommands: {}, riskySubcommands: "eval repl" }],
  ["perl", perl],
  ["ruby", ruby],
  [
    "php",
    {
      options:
        "-r|--run -B|--process-begin -R|--process-code -E|--process-end -F|--process-file -d|--define -c|--php-ini -z|--zend-extension",
      stopsAtOperand: true,
      fromInput: "-v --version -h --help -i --info -m --modules -S --server -l --syntax-check --ini",
    },
  ],
  ["lua luajit lua5.1 lua5.3 lua5.4", lua],
  ["R Rscript", { options: "-e|--eval -f|--file", stopsAtOperand: true }],
  ["julia", { options: "-e|--eval -E|--print -L|--load", stopsAtOperand: true }],
  ["elixir iex", { options: "-e|--eval --rpc-eval -r|--require -S", stopsAtOperand: true }],
  ["erl", { options: "-eval -s -run -boot -config", singleDash: true }],
  ["ghc runghc", { options: "-e -o* -pgm* -F -fplugin -package-db", singleDash: true }],
  ["osascript groovy scala gnuplot", { options: "-e", stopsAtOperand: true }],
  ["guile", { options: "-c -e -l -ds -x -L -C", stopsAtOperand: true, fromInput: "-v --version -h --help" }],
  [
    "ocaml",
    { options: "-e -init -I", singleDash: true, stopsAtOperand: true, fromInput: "-version -vnum -help" },
  ],
  ["rake", { options: "-e|--execute -p|--execute-print -E|--execute-continue -r|--require -I|--libdir" }],
  [
    "tex latex pdftex pdflatex xelatex lualatex",
    { options: "-shell-escape -enable-write18", singleDash: true },
  ],
  ["octave", { options: "--eval --persist" }],
  ["dc", { options: "-e|--expression -f|--file" }],
  ["java", { options: jvm, singleDash: true, operand: /^(?!@)/ }],
  ["vim vi nvim view gvim vimdiff rvim", vim],
  ["emacs emacsclient", emacs],
  [
    "sqlite3",
    {
      options: "-cmd -init -A*",
      singleDash: true,
      // Commands of its own that only tell something; functions and statements that touch other files.
      operand:
        /^(?!\s*\.(?!(?:tables|schema|indexes|databases|mode|headers?|dump)\b))(?!.*(?:writefile|readfile|load_extension|edit|attach|vacuum)\b)/is,
    },
  ],
  [
    "psql",
    {
      options: "-c|--command -f|--file -o|--output -L|--log-file -v|--set|--variable",
      valued: "-h -p -U -d",
    },
  ],
  [
    "mysql mariadb",
    {
      options: "-e|--execute --tee --pager --init-command --plugin-dir --defaults-file --defaults-extra-file",
    },
  ],
]
