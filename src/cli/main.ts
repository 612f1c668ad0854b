/** The command's entry. Answers what needs nothing at once, and loads the rest only then. */
const args = process.argv.slice(2)

if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
  process.stdout.write(`${process.env.TACKLE_VERSION ?? "development"}\n`)
} else {
  // Not awaited: where it fails to load, Node says so and ends; what it runs never throws.
  void import("./program.ts").then(({ runProgram }) => runProgram(args))
}
