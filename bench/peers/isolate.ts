import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"

const mark = "TACKLE_BENCH_ISOLATED"

/**
 * Runs the work without a network. Starts this program again in a network namespace with only loopback, and returns its
 * exit code. If the system does not allow this, prints a warning and runs the work directly.
 */
export async function isolate(work: () => Promise<number>): Promise<number> {
  if (process.env[mark]) return work()
  const unshare = [["--net"], ["--net", "--map-root-user"]].find(
    (flags) => spawnSync("unshare", [...flags, "ip", "link", "set", "lo", "up"]).status === 0,
  )
  if (!unshare) {
    process.stderr.write("Cannot create a private network, so the peers can access the internet.\n")
    return work()
  }
  // Passes every argument unchanged.
  const script = 'ip link set lo up && exec "$@"'
  const own = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  const child = spawn("unshare", [...unshare, "sh", "-c", script, "sh", ...own], {
    stdio: "inherit",
    env: { ...process.env, [mark]: "1" },
  })
  const [code] = await once(child, "exit")
  return typeof code === "number" ? code : 1
}
