import { expect, test } from "vitest"
import { probeSandbox } from "../../src/sandbox/probe.ts"
import type { Sandbox } from "../../src/sandbox/sandbox.ts"
import { describeSandboxed, sandboxHere } from "./here.ts"

/** What this machine decides: whether dumps go to a program outside, whether there is IPv6, perl, `unshare`. */
const depends = ["core-dump", "ipv6", "tiocsti", "namespaces"]

await describeSandboxed("the probe list", () => {
  test("every attempt to get out of the sandbox is kept from it", async () => {
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

test("the probes see where nothing holds: without a sandbox each attempt gets through", async () => {
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
  // Ending what goes on is not the sandbox's work alone; the others depend on the machine.
  const open = results.filter(({ id }) => id !== "background" && id !== "setuid" && !depends.includes(id))
  expect(open.filter(({ outcome }) => outcome !== "not enforced")).toEqual([])
})
