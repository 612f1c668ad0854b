import { expect, test } from "vitest"
import { probeSandbox } from "../../src/sandbox/probe.ts"
import type { Sandbox } from "../../src/sandbox/sandbox.ts"
import { describeSandboxed, sandboxHere } from "./support.ts"

/** Probes that depend on the machine: on where core dumps go, on IPv6, perl and `unshare`. */
const depends = ["core-dump", "ipv6", "tiocsti", "namespaces"]

await describeSandboxed("probeSandbox", () => {
  test("reports every attempt to leave the sandbox as enforced", async () => {
    const sandbox = sandboxHere("/nonexistent")
    const results = await probeSandbox(sandbox)
    await sandbox.close()
    expect(results.length).toBeGreaterThan(18)
    const certain = results.filter(({ id }) => !depends.includes(id))
    expect(certain.filter(({ outcome }) => outcome !== "enforced")).toEqual([])
    const other = results.filter(({ id }) => depends.includes(id) && id !== "core-dump")
    expect(other.filter(({ outcome }) => outcome === "not enforced")).toEqual([])
  })
})

test("reports every attempt as not enforced without a sandbox", async () => {
  const none: Sandbox = {
    mode: "auto",
    present: true,
    state: async () => ({ works: true, kind: "bubblewrap" }),
    wrap: async (command) => ({
      ...command,
      descriptors: [],
      holdsOutput: false,
      started: () => {},
      ended: () => {},
    }),
    close: async () => {},
  }
  const results = await probeSandbox(none)
  // Killing a process also ends it without a sandbox; the other excluded probes depend on the machine.
  const open = results.filter(({ id }) => id !== "background" && id !== "setuid" && !depends.includes(id))
  expect(open.filter(({ outcome }) => outcome !== "not enforced")).toEqual([])
})
