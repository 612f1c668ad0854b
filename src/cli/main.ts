import { existsSync, readFileSync, writeSync } from "node:fs"
import { join } from "node:path"

/** Path of the help text. The build creates this file. */
const helpFile = join(import.meta.dirname, "help.txt")

/** Commands that run for a long time. With the code cache, they would start faster, but need 6 MB more memory. */
const servers = ["serve", "web", "worker", "gateway", "mcp serve"]

/** Entry point of the command. `tackle --version` and `tackle --help` do not load the rest of the program. */
const args = process.argv.slice(2)
const [first = ""] = args

if (args.length === 1 && (first === "--version" || first === "-V")) {
  print(`${process.env.TACKLE_VERSION ?? "development"}\n`)
} else if (args.length === 1 && (first === "--help" || first === "-h") && existsSync(helpFile)) {
  print(readFileSync(helpFile, "utf8"))
} else {
  // Not awaited, because `runProgram` never rejects, and if a module fails to load, Node reports the error and exits.
  void loadProgram().then(({ runProgram }) => runProgram(args))
}

/** Writes directly, because creating the stdout stream takes longer than the rest of the command. */
function print(text: string): void {
  try {
    writeSync(1, text)
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined
    // A reader that exits early, as in `tackle --help | true`, is not an error.
    if (code === "EPIPE") return
    if (code === "EAGAIN") return void process.stdout.write(text)
    console.error(
      `tackle: cannot write to standard output: ${error instanceof Error ? error.message : error}.`,
    )
    process.exitCode = 1
  }
}

async function loadProgram() {
  const isServer = servers.some((name) => `${args.join(" ")} `.startsWith(`${name} `))
  if (!isServer) (await import("./process/code-cache.ts")).useCodeCache()
  return import("./program.ts")
}
