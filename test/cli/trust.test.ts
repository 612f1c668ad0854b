import { symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import { callsOf, createMachine, endOf } from "./run-tackle.ts"

const shout = (word: string) => `
  import { Tool } from "tackle/tool"
  import { z } from "zod"
  export default Tool.define("shout", {
    description: "Says a word loudly.",
    parameters: z.object({ word: z.string(), times: z.number().default(2) }),
    async execute({ word, times }) {
      return { title: word, output: (word + "${word}").toUpperCase().repeat(times), metadata: {} }
    },
  })`

test("a project's tools and settings count only after trust, and no longer once they change", async () => {
  const machine = await createMachine({
    config: { permission: { shout: "allow" } },
    files: {
      ".tackle/tool/shout.ts": shout("!"),
      ".tackle/tool/broken.ts": "export default (",
      "tackle.json": JSON.stringify({
        shell: "/bin/sh",
        instructions: ["RULES.md"],
        permission: { bash: "deny" },
      }),
      "RULES.md": "Speak softly.",
    },
    script: ({ body }) => {
      if (body.messages.at(-1)?.role === "tool") return { text: "Done." }
      return { calls: [{ name: "shout", arguments: { word: "hey" } }] }
    },
  })
  const go = (...flags: string[]) => machine.run(["run", "--format", "json", ...flags, "shout"])
  const lastOffer = () => machine.server.requests.at(-1)?.body.tools?.map((tool) => tool.function.name)

  const before = await go()
  expect(callsOf(before)).toEqual([["shout", "error", expect.stringContaining("no such tool")]])
  expect(before.stderr).toBe(
    "tackle: this project is not trusted, so these do not count: tackle.json: shell; .tackle/tool/broken.ts; " +
      ".tackle/tool/shout.ts. `tackle trust` shows and enables them.\n",
  )
  // What tightens, and instructions as text, count without trust.
  expect(lastOffer()).not.toContain("bash")
  expect(JSON.stringify(machine.server.requests.at(-1)?.body.messages)).toContain("Speak softly.")

  const asked = await machine.run(["trust"])
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining("no terminal to ask at") })
  expect(asked.stdout).toMatch(/^ {2}\.tackle\/tool\/shout\.ts {2}\(code that runs as a tool\)$/m)
  expect(asked.stdout).toMatch(/^ {2}tackle\.json {2}\(settings, rules, providers\)$/m)
  expect(callsOf(await go())[0]?.[1]).toBe("error")

  const once = await go("--trust")
  expect(callsOf(once)).toEqual([["shout", "completed", "HEY!HEY!"]])
  expect(endOf(once).exitCode).toBe(0)
  // A broken file is told and takes no other down.
  expect(once.stderr).toMatch(/^tackle: \/.*\.tackle\/tool\/broken\.ts: .*\n$/)
  expect(callsOf(await go())[0]?.[1]).toBe("error")

  expect(await machine.run(["trust", "--yes"])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/Trusted\.\n$/),
  })
  expect(callsOf(await go())).toEqual([["shout", "completed", "HEY!HEY!"]])
  expect((await machine.run(["trust"])).stdout).toMatch(/is trusted as it is\.\n$/)

  await machine.project.write(".tackle/tool/shout.ts", shout("?"))
  const changed = await go()
  expect(callsOf(changed)[0]?.[1]).toBe("error")
  expect(changed.stderr).toContain("these do not count: .tackle/tool/shout.ts. `tackle trust`")
  expect((await machine.run(["trust"])).stdout).toMatch(
    /tackle\.json {2}\(settings, rules, providers, trusted already\)/,
  )

  await machine.run(["trust", "--revoke"])
  expect((await go()).stderr).toContain("tackle.json: shell")
})

test("a custom tool is asked for like any other, also in tool list and tool call", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/tool/shout.ts": shout("!"),
      ".opencode/tools/more.ts": `
        import { z } from "zod"
        export const greet = { description: "Greets.", args: { who: z.string() }, async execute({ who }) { return "hi " + who } }`,
    },
  })
  const list = JSON.parse((await machine.run(["tool", "list", "--trust", "--format", "json"])).stdout)
  const own = list.tools.filter(({ source }: { source: string }) => source !== "builtin")
  expect(own.map(({ id }: { id: string }) => id).sort()).toEqual(["more_greet", "shout"])
  const call = (...args: string[]) => machine.run(["tool", "call", "--trust", ...args])
  expect(await call("shout", '{"word":"a"}')).toMatchObject({ code: 3, stdout: "" })
  expect(await call("shout", '{"word":"a"}', "--allow", "shout")).toMatchObject({ code: 0, stdout: "A!A!\n" })
  expect(await call("more_greet", '{"who":"Ada"}', "--auto")).toMatchObject({ code: 0, stdout: "hi Ada\n" })
  expect(await call("shout", '{"times":"x"}', "--auto")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("word"),
  })
})

test("a link among the instructions of an untrusted project brings nothing from outside", async () => {
  const machine = await createMachine({ git: true, script: () => ({ text: "Done." }) })
  const secret = join(machine.home, "notes.md")
  await writeFile(secret, "the person's own notes")
  await machine.project.write("docs/own.md", "the project's own words")
  await symlink(secret, machine.project.path("docs/stolen.md"))
  await machine.project.write("tackle.json", JSON.stringify({ instructions: ["docs/*.md"] }))
  const first = await machine.run(["run", "hello"])
  expect(first.stderr).toMatch(/docs\/stolen\.md leads out of this project, which is not trusted/)
  const sent = () => JSON.stringify(machine.server.requests.at(-1)?.body)
  expect(sent()).toContain("the project's own words")
  expect(sent()).not.toContain("own notes")
  await machine.run(["run", "--trust", "hello"])
  expect(sent()).toContain("own notes")
})
