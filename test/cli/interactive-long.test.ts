import { describe, expect, test } from "vitest"
import { lastText, storeLongSession } from "../../bench/long-session.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { createMachine, until } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

const bash = (command: string) => ({
  name: "bash",
  arguments: { command, description: "Do it" },
})

describe.skipIf(!hasTmux)("a long conversation in the interactive terminal (needs tmux)", () => {
  test("shows the end first, and earlier messages on request", async () => {
    const machine = await createMachine({ script: [] })
    const id = await storeLongSession(machine.project.directory, machine.data)
    const terminal = await openTerminal(machine)
    await terminal.tackle("-s", id)
    const screen = await terminal.sees(lastText)
    expect(screen).toContain("── earlier messages: PgUp ──")
    expect(screen).not.toContain("Do step 495 of")
    await terminal.press("PPage")
    await terminal.sees("Do step 495 of")
    await terminal.press("/fullscreen", "Enter")
    await until("the alternate screen is active", terminal.isAlternate)
    await until("an earlier message is visible", async () => {
      await terminal.press("PPage")
      const steps = (await terminal.screen()).matchAll(/Do step (\d+) of/g)
      return steps.some(([, step]) => Number(step) <= 488)
    })
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")
  })

  test("loads earlier messages with the mouse wheel at the top of the full screen", async () => {
    const machine = await createMachine({ script: [] })
    const id = await storeLongSession(machine.project.directory, machine.data)
    const terminal = await openTerminal(machine)
    await terminal.tackle("--fullscreen", "-s", id)
    await terminal.sees(lastText)
    const wheelUp = "\u001b[<64;10;5M"
    const first = async () => Number(/Do step (\d+) of/.exec(await terminal.screen())?.[1])
    await terminal.press("C-Home")
    await terminal.sees("── earlier messages")
    await terminal.press(wheelUp)
    // The next line above the former first line is now visible.
    await until("the line about earlier messages is gone", async () => {
      const screen = await terminal.screen()
      return !screen.includes("── earlier messages") && !screen.includes(lastText)
    })
    // More messages than are kept in memory.
    await until("much earlier messages are visible", async () => {
      await terminal.press("C-Home", wheelUp)
      return (await first()) < 285
    })
    await terminal.press("C-End")
    await terminal.sees(lastText)
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")
  })

  test("shows each paragraph once after many resizes while the answer streams", async () => {
    const text = Array.from({ length: 60 }, (_, index) => `Paragraph ${index} of the text.\n\n`).join("")
    const machine = await createMachine({ script: [{ text, pieceSize: 8, pieceDelayMs: 10 }] })
    const terminal = await openTerminal(machine)
    await terminal.tackle()
    await terminal.sees("test/m")
    await terminal.type("go")
    await terminal.sees("Paragraph 5 of")
    for (let index = 0; index < 12; index += 1) {
      const isSmall = index % 2 === 0
      await terminal.resize(isSmall ? 40 : 80, isSmall ? 12 : 24)
    }
    await terminal.resize(40, 12)
    await terminal.sees("Paragraph 20 of")
    await terminal.press("typed meanwhile")
    await terminal.sees("typed meanwhile")
    await terminal.resize(80, 24)
    await until("the run has ended", async () => {
      const screen = await terminal.screen()
      return screen.includes("Paragraph 59 of") && !screen.includes("working")
    })
    const screen = await terminal.screen()
    const numbers = [...screen.matchAll(/^Paragraph (\d+) of the text\.$/gm)].map(([, number]) =>
      Number(number),
    )
    expect(numbers).toEqual(Array.from({ length: 60 }, (_, index) => index))
    expect(screen).toMatch(/Paragraph 59 of the text\.\n+─+\n typed meanwhile\s*\n─+\nbuild · test\/m/)
    expect(await terminal.broken()).toEqual([])
  })

  test("clears nothing while parallel calls that are taller than the screen change", async () => {
    const count = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.2; done"
    const script: Reply[] = [
      { calls: [1, 2, 3, 4].map((call) => bash(`echo call ${call}; ${count}`)) },
      { text: "All calls ended." },
    ]
    const machine = await createMachine({ script, config: { sandbox: "off", permission: { "*": "allow" } } })
    const terminal = await openTerminal(machine)
    await terminal.tackle("--dir", machine.project.directory)
    await terminal.sees("test/m")
    await terminal.log()
    await terminal.type("do it")
    await terminal.sees("line 7")
    const streamed = await terminal.logged()
    await terminal.sees("All calls ended.")
    expect(streamed).not.toContain("\u001b[3J")
    // When the run ends, the lines above the screen are drawn in their final state.
    await until("the calls are complete", async () => {
      const screen = await terminal.screen()
      return screen.match(/^✓ bash/gm)?.length === 4 && !screen.includes("●")
    })
  })
})
