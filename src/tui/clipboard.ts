import { spawn } from "node:child_process"
import type { Terminal } from "@earendil-works/pi-tui"

/**
 * Copies a text to the clipboard: with a program of the desktop if one is installed, and otherwise with OSC 52, which
 * also reaches the user's terminal over SSH. Most terminals support OSC 52, but none confirms it.
 */
export async function copyText(
  text: string,
  { env, terminal }: { env: Readonly<Record<string, string | undefined>>; terminal: Pick<Terminal, "write"> },
): Promise<void> {
  for (const [program, ...args] of copyPrograms(env)) if (await pipe(text, { program, args, env })) return
  terminal.write(`\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`)
}

function copyPrograms({ WAYLAND_DISPLAY, DISPLAY }: Readonly<Record<string, string | undefined>>) {
  const programs: [string, ...string[]][] = []
  if (process.platform === "darwin") programs.push(["pbcopy"])
  if (WAYLAND_DISPLAY) programs.push(["wl-copy"])
  if (DISPLAY) programs.push(["xclip", "-selection", "clipboard", "-in"])
  return programs
}

/** Writes the text to a program. Resolves with false if the program is not installed or fails. */
function pipe(
  text: string,
  {
    program,
    args,
    env,
  }: { program: string; args: readonly string[]; env: Readonly<Record<string, string | undefined>> },
): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { env, stdio: ["pipe", "ignore", "ignore"], timeout: 5_000 })
    child.once("error", () => resolve(false))
    child.once("exit", (code) => resolve(code === 0))
    child.stdin.on("error", () => {})
    child.stdin.end(text)
  })
}
