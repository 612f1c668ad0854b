import { existsSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { arrivalMs, outcomeOf, type Probe, untested } from "./probe-context.ts"

const fileProbes: readonly Probe[] = [
  {
    id: "write-outside",
    attempt: "write a file outside the project",
    async run({ run, outside }) {
      await run(`echo x > ${outside}/file`)
      return outcomeOf(!existsSync(join(outside, "file")))
    },
  },
  {
    id: "write-protected",
    attempt: "change a protected file in the project",
    async run({ run, inside }) {
      await run("echo x > protected/file; rm -rf protected/file")
      return outcomeOf(keeps(join(inside, "protected/file"), "kept\n"))
    },
  },
  {
    id: "create-protected",
    attempt: "create a missing protected directory",
    async run({ run, inside }) {
      await run("mkdir -p missing/deep; echo x > missing/file")
      return outcomeOf(!existsSync(join(inside, "missing/file")) && !existsSync(join(inside, "missing/deep")))
    },
  },
  {
    id: "rename-protected",
    attempt: "move or replace a protected directory",
    async run({ run, inside }) {
      await run("mkdir other; echo x > other/file; mv protected gone; mv -T other protected")
      return outcomeOf(keeps(join(inside, "protected/file"), "kept\n"))
    },
  },
  {
    id: "link-swap",
    attempt: "write outside the project through a link",
    async run({ run, inside, outside }) {
      symlinkSync(outside, join(inside, "link"))
      await run(`echo x > link/one; ln -s ${outside} own; echo x > own/two; ln ${outside} hard`)
      return outcomeOf(!existsSync(join(outside, "one")) && !existsSync(join(outside, "two")))
    },
  },
  {
    id: "read-denied",
    attempt: "read a hidden file",
    run: async ({ run }) =>
      outcomeOf(!(await run("cat secret; cp secret copy; cat copy")).includes("hidden")),
  },
  {
    id: "read-replaced",
    attempt: "read a hidden file that is replaced while the command runs",
    async run({ run, inside }) {
      const ended = run(
        "cat private/*; : > ready; n=0; until [ -e go ] || [ $n = 100 ]; do n=$((n + 1)); sleep 0.02; done; cat private/*",
      )
      for (let tries = 0; tries < 100 && !existsSync(join(inside, "ready")); tries++) await delay(20)
      writeFileSync(join(inside, "private/new"), "hidden\n")
      renameSync(join(inside, "private/new"), join(inside, "private/key"))
      writeFileSync(join(inside, "go"), "")
      return outcomeOf(!(await ended).includes("hidden"))
    },
  },
]

function keeps(path: string, text: string): boolean {
  return existsSync(path) && readFileSync(path, "utf8") === text
}

const networkProbes: readonly Probe[] = [
  ...(["ipv4", "ipv6"] as const).map(
    (name): Probe => ({
      id: name,
      attempt: `connect to a server over ${name === "ipv4" ? "IPv4" : "IPv6"}`,
      async run({ node, targets }) {
        const port = targets[name]
        if (port === undefined) return untested("this machine has no IPv6")
        const host = name === "ipv4" ? "127.0.0.1" : "::1"
        await node(connectScript({ port, host }))
        return outcomeOf(!targets.reached(name))
      },
    }),
  ),
  {
    id: "udp",
    attempt: "send a UDP packet",
    async run({ node, targets }) {
      await node(
        `const s = require("dgram").createSocket("udp4"); s.send("x", ${targets.udp}, "127.0.0.1", () => s.close())`,
      )
      await delay(arrivalMs)
      return outcomeOf(!targets.reached("udp"))
    },
  },
  {
    id: "dns",
    attempt: "resolve a host name",
    async run({ node, targets }) {
      const server = JSON.stringify(`127.0.0.1:${targets.dns}`)
      await node(
        `const r = new (require("dns").Resolver)({ timeout: 200, tries: 1 }); r.setServers([${server}]); r.resolve4("example.test", () => {})`,
      )
      return outcomeOf(!targets.reached("dns"))
    },
  },
  {
    id: "unix-socket",
    attempt: "connect to a Unix socket, such as Docker's",
    async run({ node, targets }) {
      await node(connectScript({ path: targets.unix }))
      return outcomeOf(!targets.reached("unix"))
    },
  },
  {
    id: "abstract-socket",
    attempt: "connect to an abstract Unix socket",
    async run({ node, targets }) {
      if (targets.abstract === undefined) return untested("this system has no abstract sockets")
      await node(connectScript({ path: targets.abstract }))
      return outcomeOf(!targets.reached("abstract"))
    },
  },
]

function connectScript(where: { port: number; host: string } | { path: string }): string {
  return `const s = require("net").connect(${JSON.stringify(where)}); s.on("error", () => {}); s.on("connect", () => s.destroy())`
}

/** Maximum number of lines that the background process writes, about 20 seconds. */
const maxBeats = 400

const processProbes: readonly Probe[] = [
  {
    id: "environment",
    attempt: "read credentials from the environment",
    async run({ run }) {
      const said = await run("env", { PROBE_API_KEY: "leaked", SSH_AUTH_SOCK: "leaked" })
      return said.includes("PATH=") ? outcomeOf(!said.includes("leaked")) : untested("env does not work")
    },
  },
  {
    id: "proc-1",
    attempt: "read the environment of processes outside the sandbox",
    async run({ run, targets: { observed } }) {
      if (!existsSync("/proc/self/environ")) return untested("this system has no /proc")
      // Reads the observed process first, because the output is cut off if many processes are running.
      const own = `/proc/${observed.pid}/environ`
      return outcomeOf(
        !(await run(`cat ${own} /proc/1/environ /proc/[0-9]*/environ`)).includes(observed.mark),
      )
    },
  },
  {
    id: "ptrace",
    attempt: "access or kill a process outside the sandbox",
    async run({ run, targets: { killable } }) {
      const said = await run(`cat /proc/${killable.pid}/maps && echo reached; kill -9 ${killable.pid}`)
      await delay(arrivalMs)
      return outcomeOf(killable.alive() && !said.includes("reached"))
    },
  },
  {
    id: "tiocsti",
    attempt: "type into a terminal",
    async run({ run }) {
      const script = `open(T, "<", "/dev/ptmx") or exit 3; $b = "x"; exit(ioctl(T, 0x5412, $b) ? 1 : ($!{EPERM} || $!{EACCES}) ? 0 : 2)`
      const said = await run(`perl -MErrno -e '${script}'; echo "exit $?"`)
      if (said.includes("exit 0")) return outcomeOf(true)
      return said.includes("exit 1") ? outcomeOf(false) : untested("perl or a terminal device is missing")
    },
  },
  {
    id: "setuid",
    attempt: "gain privileges through a set-user-ID program",
    async run({ run }) {
      const said = await run("cat /proc/self/status")
      if (!said.includes("NoNewPrivs")) return untested("this system does not report NoNewPrivs")
      return outcomeOf(/NoNewPrivs:\s*1/.test(said))
    },
  },
  {
    id: "namespaces",
    attempt: "become root in a new namespace",
    async run({ run }) {
      const said = await run("unshare --user --map-root-user true && echo entered; echo tried")
      if (said.includes("not found")) return untested("unshare is missing")
      return outcomeOf(!said.includes("entered"))
    },
  },
  {
    id: "background",
    attempt: "keep running after being killed",
    async run({ start, inside }) {
      const beat = join(inside, "beat")
      const child = await start(
        // Limits the loop, in case this process is killed before it can end the attempt.
        `(trap '' TERM HUP; exec setsid sh -c 'n=0; while [ $n -lt ${maxBeats} ]; do n=$((n + 1)); echo x >> ${beat} || exit; sleep 0.05; done') & sleep 0.3`,
      )
      await child.exited
      if (!existsSync(beat)) return untested("no background process started")
      await child.kill(arrivalMs)
      const before = readFileSync(beat, "utf8").length
      await delay(arrivalMs)
      return outcomeOf(readFileSync(beat, "utf8").length === before)
    },
  },
  {
    id: "kernel-settings",
    attempt: "change a kernel setting",
    async run({ run }) {
      const setting = "/proc/sys/kernel/core_pattern"
      if (!existsSync(setting)) return untested("this system has no kernel settings in /proc/sys")
      // Opens the file for writing, but writes nothing.
      return outcomeOf(!(await run(`: >> ${setting} && echo opened`)).includes("opened"))
    },
  },
  {
    id: "core-dump",
    attempt: "write a core dump outside the project",
    async run({ run }) {
      const pattern = "/proc/sys/kernel/core_pattern"
      if (!existsSync(pattern)) return untested("this system does not report where core dumps go")
      const target = readFileSync(pattern, "utf8").trim()
      if (target.startsWith("|")) {
        return {
          outcome: "not enforced",
          detail: "the system passes core dumps to a program outside (core_pattern)",
        }
      }
      await run("ulimit -c unlimited; sh -c 'kill -SEGV $$'")
      return {
        outcome: "enforced",
        detail: target.startsWith("/")
          ? "the dump directory is read-only"
          : "core dumps are written to the working directory",
      }
    },
  },
]

/** All attempts to escape the sandbox. Each attempt runs in its own context. */
export const probes: readonly Probe[] = [...fileProbes, ...networkProbes, ...processProbes]
