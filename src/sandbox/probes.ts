import { existsSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { RunningProcess } from "../util/process.ts"
import type { ProbeResult } from "./probe.ts"
import type { Surroundings } from "./probe-surroundings.ts"

/**
 * Where an attempt is made. `inside` may be written but for `protected`, cannot read `secret` and what lies in `private`, and may not get `missing`;
 * `outside` may only be read. The network is closed.
 */
export interface ProbeScene {
  inside: string
  outside: string
  surroundings: Surroundings
  start(text: string): Promise<RunningProcess>
  /** Runs a text for `sh` to its end; what it said. */
  run(text: string, env?: Record<string, string>): Promise<string>
  /** The same for a script of this very program. */
  node(script: string): Promise<string>
}

type Outcome = Pick<ProbeResult, "outcome" | "detail">

interface Probe {
  id: string
  attempt: string
  run(scene: ProbeScene): Promise<Outcome>
}

/** Every attempt, each with a scene of its own. What counts is what is seen outside, not what the attempt says. */
export const probes: readonly Probe[] = [
  {
    id: "write-outside",
    attempt: "write a file outside of the project",
    async run({ run, outside }) {
      await run(`echo x > ${outside}/file`)
      return held(!existsSync(join(outside, "file")))
    },
  },
  {
    id: "write-protected",
    attempt: "change a protected file of the project",
    async run({ run, inside }) {
      await run("echo x > protected/file; rm -rf protected/file")
      return held(keeps(join(inside, "protected/file"), "kept\n"))
    },
  },
  {
    id: "create-protected",
    attempt: "make a protected directory that is missing",
    async run({ run, inside }) {
      await run("mkdir -p missing/deep; echo x > missing/file")
      return held(!existsSync(join(inside, "missing/file")) && !existsSync(join(inside, "missing/deep")))
    },
  },
  {
    id: "rename-protected",
    attempt: "move a protected directory away, or another over it",
    async run({ run, inside }) {
      await run("mkdir other; echo x > other/file; mv protected gone; mv -T other protected")
      return held(keeps(join(inside, "protected/file"), "kept\n"))
    },
  },
  {
    id: "link-swap",
    attempt: "write outside through a link",
    async run({ run, inside, outside }) {
      symlinkSync(outside, join(inside, "link"))
      await run(`echo x > link/one; ln -s ${outside} own; echo x > own/two; ln ${outside} hard`)
      return held(!existsSync(join(outside, "one")) && !existsSync(join(outside, "two")))
    },
  },
  {
    id: "read-denied",
    attempt: "read a file that is denied",
    run: async ({ run }) => held(!(await run("cat secret; cp secret copy; cat copy")).includes("hidden")),
  },
  {
    id: "read-replaced",
    attempt: "read a file of a hidden directory that is replaced meanwhile",
    async run({ run, inside }) {
      const ended = run(
        "cat private/*; : > ready; n=0; until [ -e go ] || [ $n = 100 ]; do n=$((n + 1)); sleep 0.02; done; cat private/*",
      )
      for (let tries = 0; tries < 100 && !existsSync(join(inside, "ready")); tries++) await delay(20)
      writeFileSync(join(inside, "private/new"), "hidden\n")
      renameSync(join(inside, "private/new"), join(inside, "private/key"))
      writeFileSync(join(inside, "go"), "")
      return held(!(await ended).includes("hidden"))
    },
  },
  {
    id: "environment",
    attempt: "read credentials from the environment",
    async run({ run }) {
      const said = await run("env", { PROBE_API_KEY: "leaked", SSH_AUTH_SOCK: "leaked" })
      return said.includes("PATH=") ? held(!said.includes("leaked")) : untested("env does not run")
    },
  },
  ...(["ipv4", "ipv6"] as const).map(
    (name): Probe => ({
      id: name,
      attempt: `reach a server by ${name === "ipv4" ? "IPv4" : "IPv6"}`,
      async run({ node, surroundings }) {
        const port = surroundings[name]
        if (port === undefined) return untested("this machine has no IPv6")
        const host = name === "ipv4" ? "127.0.0.1" : "::1"
        await node(connectScript({ port, host }))
        return held(!surroundings.reached(name))
      },
    }),
  ),
  {
    id: "udp",
    attempt: "send a datagram",
    async run({ node, surroundings }) {
      await node(
        `const s = require("dgram").createSocket("udp4"); s.send("x", ${surroundings.udp}, "127.0.0.1", () => s.close())`,
      )
      await delay(arrivalMs)
      return held(!surroundings.reached("udp"))
    },
  },
  {
    id: "dns",
    attempt: "ask for an address by name",
    async run({ node, surroundings }) {
      const server = JSON.stringify(`127.0.0.1:${surroundings.dns}`)
      await node(
        `const r = new (require("dns").Resolver)({ timeout: 200, tries: 1 }); r.setServers([${server}]); r.resolve4("example.test", () => {})`,
      )
      return held(!surroundings.reached("dns"))
    },
  },
  {
    id: "unix-socket",
    attempt: "reach a socket such as Docker's",
    async run({ node, surroundings }) {
      await node(connectScript({ path: surroundings.unix }))
      return held(!surroundings.reached("unix"))
    },
  },
  {
    id: "abstract-socket",
    attempt: "reach a socket without a file",
    async run({ node, surroundings }) {
      if (surroundings.abstract === undefined) return untested("this system has none")
      await node(connectScript({ path: surroundings.abstract }))
      return held(!surroundings.reached("abstract"))
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

/** How long it is waited for something that should not arrive, in milliseconds. */
const arrivalMs = 200

function held(enforced: boolean): Outcome {
  return { outcome: enforced ? "enforced" : "not enforced" }
}

function untested(detail: string): Outcome {
  return { outcome: "untested", detail }
}

function keeps(path: string, text: string): boolean {
  return existsSync(path) && readFileSync(path, "utf8") === text
}

function connectScript(where: { port: number; host: string } | { path: string }): string {
  return `const s = require("net").connect(${JSON.stringify(where)}); s.on("error", () => {}); s.on("connect", () => s.destroy())`
}
