/** The command's entry. Answers what needs nothing at once, and loads the rest only then. */
const args = process.argv.slice(2)

if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) {
  process.stdout.write(`${process.env.TACKLE_VERSION ?? "development"}\n`)
} else {
  const { runProgram } = await import("./program.ts")
  await runProgram(args)
}

// Without this the file would be a script, which cannot await at its top.
export {}
