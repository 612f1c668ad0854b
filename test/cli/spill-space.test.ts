import { expect, test } from "vitest"
import type { MessageWithParts } from "../../src/schema/message.ts"
import { canMount, machineMounts } from "../crash/disk.ts"
import { callsOf, createMachine, endOf, tackleCommand } from "./run-tackle.ts"

const megabyte = 1024 * 1024

/** Runs the command with its arguments. Then prints the free bytes of the data disk and the stored session to stderr. */
const thenShow = [
  "sh",
  "-c",
  '"$@"; code=$?; echo $(($(stat -fc "%a * %S" "$TACKLE_DATA_DIR"))) >&2; "$1" session show --json >&2; exit $code',
  "sh",
]

test.skipIf(!canMount()).each([
  { megabytes: 8, commands: 4, reserve: "2 MB" },
  { megabytes: 40, commands: 2, reserve: "10 MB" },
  { megabytes: 264, commands: 1, reserve: "64 MB" },
])(
  "stores results that exceed a disk of $megabytes MB, and keeps $reserve free ($commands parallel)",
  async ({ megabytes, commands, reserve }) => {
    const size = megabytes * megabyte
    const machine = await createMachine({
      config: { permission: { "*": "allow" }, sandbox: "off" },
      script: [
        {
          calls: Array.from({ length: commands }, (_, index) => ({
            name: "bash",
            arguments: {
              command: `yes 'line of command ${index}' | head -c ${size + megabyte}; echo; echo end ${index}`,
              description: "Print a lot",
            },
          })),
        },
        { text: "All read." },
      ],
    })
    const [program = "", ...mounts] = [...machineMounts, "--size", String(size), "--tmpfs", machine.data]
    const run = await machine.run(["run", "--format", "json", "go"], {
      command: [program, ...mounts, ...thenShow, tackleCommand],
      timeoutMs: 55_000,
    })
    expect(endOf(run)).toMatchObject({ status: "completed", exitCode: 0, text: "All read." })
    const results = callsOf(run).map(([, status, output]) => ({ status, output }))
    expect(results).toHaveLength(commands)
    for (const [index, { status, output }] of results.entries()) {
      expect(status).toBe("completed")
      expect(output).toContain(
        `(the disk is almost full: the last ${reserve} of free space is reserved for the database)`,
      )
      expect(output).toContain(`\nend ${index}\n`)
    }
    const [free = "", ...shown] = run.stderr.split("\n")
    // The database and the last block of each file use a part of the reserve.
    expect(Number(free)).toBeGreaterThan((Number.parseInt(reserve, 10) * megabyte) / 2)
    const stored = JSON.parse(shown.join("\n")) as { messages: MessageWithParts[] }
    const storedResults = stored.messages.flatMap(({ parts }) =>
      parts.flatMap((part) =>
        part.type === "tool" && part.state.status === "completed" ? [part.state.output] : [],
      ),
    )
    expect(storedResults).toEqual(results.map(({ output }) => output))
  },
  60_000,
)
