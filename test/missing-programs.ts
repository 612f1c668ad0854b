import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { browserProgram } from "./browser.ts"
import { nginxProgram } from "./nginx.ts"
import { postgresPrograms } from "./postgres-server.ts"
import { s3Program } from "./s3.ts"

/** Debian installs the programs of PostgreSQL outside of the search path. */
const initdb = postgresPrograms === undefined ? "initdb" : join(postgresPrograms, "initdb")

/** Programs that some tests need, how to find them, and the package of Debian that contains them. */
const programs = [
  { name: "bubblewrap", command: ["bwrap", "--version"], tests: "the sandbox", package: "bubblewrap" },
  { name: "socat", command: ["socat", "-V"], tests: "the network of the sandbox", package: "socat" },
  { name: "tmux", command: ["tmux", "-V"], tests: "the terminal", package: "tmux" },
  { name: "PostgreSQL", command: [initdb, "--version"], tests: "PostgreSQL", package: "postgresql" },
  {
    name: "Chromium",
    command: [browserProgram ?? "chromium", "--version"],
    tests: "the web page",
    package: "chromium-headless-shell",
  },
  {
    name: "nginx",
    command: [nginxProgram ?? "nginx", "-v"],
    tests: "streams through a proxy",
    package: "nginx",
  },
  { name: "Python 3", command: ["python3", "--version"], tests: "tools in Python", package: "python3" },
] as const

/** Prints once, after all tests, which tests were skipped and how to run them. */
export default function setUp(): (() => void) | undefined {
  // Each project of the configuration runs this function.
  if (process.env.TACKLE_TEST_PROGRAMS) return undefined
  process.env.TACKLE_TEST_PROGRAMS = "checked"
  const missing = programs.filter(({ command: [program, ...args] }) => spawnSync(program, args).error)
  if (!existsSync(s3Program)) console.log("Skipped the tests of S3-compatible storage. To run them: npm ci")
  if (missing.length === 0) return undefined
  const tests = missing.map((each) => `${each.tests} (${each.name} is not installed)`).join(", ")
  const packages = missing.map((each) => each.package).join(" ")
  return () => console.log(`Skipped the tests of ${tests}. To run them: apt-get install ${packages}`)
}
