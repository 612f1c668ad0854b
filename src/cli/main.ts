/** Entry point of the command. `tackle --version` does not load the rest of the program. */
const args = process.argv.slice(2)

if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
  process.stdout.write(`${process.env.TACKLE_VERSION ?? "development"}\n`)
} else {
  // The promise is not awaited: `runProgram` never rejects, and if its module fails to load, Node reports the error and
  // exits.
  void import("./program.ts").then(({ runProgram }) => runProgram(args))
}
