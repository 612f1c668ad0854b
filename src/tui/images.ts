import { execFile } from "node:child_process"
import { readFile, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { basename, extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { PromptFile } from "../schema/input.ts"
import { systemCode, UsageError } from "../util/errors.ts"

/** Maximum size of an image in bytes. */
const maxBytes = 10 * 1024 * 1024

const types: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
}

/**
 * Returns the absolute path if the pasted text is the path of an image that begins with `/` or `~/`. Accepts the forms
 * in which terminals write the path of a dropped file: in quotes, with backslashes, or as a `file:` URL. Returns
 * undefined for any other text.
 */
export function imagePath(text: string): string | undefined {
  const path = pathIn(text)
  return extname(path).toLowerCase() in types ? path : undefined
}

/**
 * Reads the image at a path that {@link imagePath} returned. Returns undefined if the file cannot be read. Throws
 * `UsageError` if the file is larger than {@link maxBytes}.
 */
export async function readImage(path: string): Promise<PromptFile | undefined> {
  const mime = types[extname(path).toLowerCase()] ?? ""
  try {
    const { size } = await stat(path)
    if (size > maxBytes) throw tooLarge(path)
    return { mime, url: dataUrl(mime, await readFile(path)), filename: basename(path) }
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

function pathIn(text: string): string {
  const line = text.trim()
  if (line.includes("\n")) return ""
  if (line.startsWith("file://")) {
    try {
      return fileURLToPath(line)
    } catch {
      return ""
    }
  }
  const quoted = /^'([^']*)'$|^"([^"]*)"$/.exec(line)
  const plain = quoted?.[1] ?? quoted?.[2] ?? line.replace(/\\(.)/g, "$1")
  if (plain.startsWith("~/")) return join(homedir(), plain.slice(2))
  return plain.startsWith("/") ? plain : ""
}

/**
 * Reads the image in the clipboard with `wl-paste`, `xclip` or `pngpaste`. Throws `UsageError` if the clipboard
 * contains no image, if the image is larger than {@link maxBytes}, if none of these programs is installed, or if no
 * clipboard is available.
 */
export async function clipboardImage(env: Readonly<Record<string, string | undefined>>): Promise<PromptFile> {
  const programs = clipboardPrograms(env)
  let isInstalled = false
  for (const [program, ...args] of programs) {
    const bytes = await output(program, args)
    if (bytes === "missing") continue
    isInstalled = true
    if (bytes.length > maxBytes) throw tooLarge("in the clipboard")
    if (bytes.length > 0)
      return { mime: "image/png", url: dataUrl("image/png", bytes), filename: "clipboard.png" }
  }
  if (isInstalled) throw new UsageError("The clipboard contains no image.")
  if (programs.length === 0)
    throw new UsageError(
      "No clipboard is available, because WAYLAND_DISPLAY and DISPLAY are not set. Paste the path of an image instead.",
    )
  const names = programs.map(([program]) => program).join(" or ")
  throw new UsageError(`To paste an image, install ${names}. You can also paste the path of an image.`)
}

function clipboardPrograms({
  WAYLAND_DISPLAY,
  DISPLAY,
}: Readonly<Record<string, string | undefined>>): [string, ...string[]][] {
  if (process.platform === "darwin") return [["pngpaste", "-"]]
  const programs: [string, ...string[]][] = []
  if (WAYLAND_DISPLAY) programs.push(["wl-paste", "--no-newline", "--type", "image/png"])
  if (DISPLAY) programs.push(["xclip", "-selection", "clipboard", "-target", "image/png", "-out"])
  return programs
}

/**
 * Returns the output of a program. Returns an empty buffer if the program fails, and `missing` if it is not installed.
 */
function output(program: string, args: readonly string[]): Promise<Buffer | "missing"> {
  const options = { encoding: "buffer", maxBuffer: 4 * maxBytes, timeout: 5_000 } as const
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout) => {
      if (systemCode(error) === "ENOENT") resolve("missing")
      else resolve(error ? Buffer.alloc(0) : stdout)
    })
  })
}

function dataUrl(mime: string, bytes: Buffer): string {
  return `data:${mime};base64,${bytes.toString("base64")}`
}

function tooLarge(name: string): UsageError {
  return new UsageError(`The image ${name} is larger than ${maxBytes / 1024 / 1024} MiB.`)
}
