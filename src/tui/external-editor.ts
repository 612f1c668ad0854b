import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TUI } from "@earendil-works/pi-tui"
import { errorMessage, UsageError } from "../util/errors.ts"

/**
 * Opens the text in the editor that `$VISUAL` or `$EDITOR` names. The editor uses the terminal until it exits. Returns
 * the changed text, or undefined if the editor exits with an error. Throws `UsageError` if no editor is set, or if the
 * editor cannot be started.
 */
export async function editExternally(
  text: string,
  { tui, env }: { tui: TUI; env: Readonly<Record<string, string | undefined>> },
): Promise<string | undefined> {
  const [program, ...args] = (env.VISUAL || env.EDITOR || "").split(/\s+/).filter((word) => word !== "")
  if (program === undefined) throw new UsageError("Set VISUAL or EDITOR to edit the input in an editor.")
  const directory = await mkdtemp(join(tmpdir(), "tackle-input-"))
  const file = join(directory, "input.md")
  try {
    await writeFile(file, text, { mode: 0o600 })
    tui.stop()
    let status: number | null
    try {
      status = await run(program, [...args, file])
    } finally {
      tui.start()
      tui.requestRender(true)
    }
    return status === 0 ? (await readFile(file, "utf8")).replace(/\n$/, "") : undefined
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function run(program: string, args: readonly string[]): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: "inherit" })
    child.on("error", (error) =>
      reject(
        new UsageError(
          `Cannot start the editor ${program}: ${errorMessage(error)}. Check VISUAL and EDITOR.`,
        ),
      ),
    )
    child.on("close", resolve)
  })
}
