import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { arrivalMs, held, type Probe, untested } from "../probe-scene.ts"

/** Attempts at other processes, their terminals and memory, and at rights of its own. */
export const processProbes: readonly Probe[] = [
  {
    id: "environment",
    attempt: "read credentials from the environment",
    async run({ run }) {
      const said = await run("env", { PROBE_API_KEY: "leaked", SSH_AUTH_SOCK: "leaked" })
      return said.includes("PATH=") ? held(!said.includes("leaked")) : untested("env does not run")
    },
  },
  {
    id: "proc-1",
    attempt: "read the environment of processes outside",
    async run({ run, surroundings: { stranger } }) {
      if (!existsSync("/proc/self/environ")) return untested("this system has no /proc")
      // First the one that is looked for: of all the others on a busy machine the output may be cut.
      const own = `/proc/${stranger.pid}/environ`
      return held(!(await run(`cat ${own} /proc/1/environ /proc/[0-9]*/environ`)).includes(stranger.mark))
    },
  },
  {
    id: "ptrace",
    attempt: "reach into a process outside",
    async run({ run, surroundings: { victim } }) {
      const said = await run(`cat /proc/${victim.pid}/maps && echo reached; kill -9 ${victim.pid}`)
      await delay(arrivalMs)
      return held(victim.alive() && !said.includes("reached"))
    },
  },
  {
    id: "tiocsti",
    attempt: "type into a terminal",
    async run({ run }) {
      const script = `open(T, "<", "/dev/ptmx") or exit 3; $b = "x"; exit(ioctl(T, 0x5412, $b) ? 1 : ($!{EPERM} || $!{EACCES}) ? 0 : 2)`
      const said = await run(`perl -MErrno -e '${script}'; echo "exit $?"`)
      if (said.includes("exit 0")) return held(true)
      return said.includes("exit 1") ? held(false) : untested("it takes perl and a terminal device")
    },
  },
  {
    id: "setuid",
    attempt: "gain rights by a set-user-ID program",
    async run({ run }) {
      const said = await run("cat /proc/self/status")
      if (!said.includes("NoNewPrivs")) return untested("this system does not tell")
      return held(/NoNewPrivs:\s*1/.test(said))
    },
  },
  {
    id: "namespaces",
    attempt: "become root in a namespace of its own",
    async run({ run }) {
      const said = await run("unshare --user --map-root-user true && echo entered; echo tried")
      if (said.includes("not found")) return untested("it takes unshare")
      return held(!said.includes("entered"))
    },
  },
  {
    id: "background",
    attempt: "go on after being killed",
    async run({ start, inside }) {
      const beat = join(inside, "beat")
      const child = await start(
        `(trap '' TERM HUP; exec setsid sh -c 'while :; do echo x >> ${beat}; sleep 0.05; done') & sleep 0.3`,
      )
      await child.exited
      if (!existsSync(beat)) return untested("nothing went on in the background")
      await child.kill()
      const before = readFileSync(beat, "utf8").length
      await delay(arrivalMs)
      return held(readFileSync(beat, "utf8").length === before)
    },
  },
  {
    id: "core-dump",
    attempt: "leave its memory outside in a core dump",
    async run({ run, inside }) {
      const pattern = "/proc/sys/kernel/core_pattern"
      if (!existsSync(pattern)) return untested("this system does not tell where dumps go")
      const target = readFileSync(pattern, "utf8").trim()
      if (target.startsWith("|")) {
        return {
          outcome: "not enforced",
          detail: "the system hands dumps to a program outside (core_pattern)",
        }
      }
      await run("ulimit -c unlimited; sh -c 'kill -SEGV $$'")
      return {
        outcome: "enforced",
        detail: target.startsWith("/") ? "its place is read-only" : `dumps land in ${inside}`,
      }
    },
  },
]
