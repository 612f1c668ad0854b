import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Command } from "commander"
import { findWorktree } from "../../config/location.ts"
import { defaultDataDirectory } from "../../engine/data-directory.ts"
import { UsageError } from "../../util/errors.ts"
import { counted } from "../../util/words.ts"
import { openInBrowser } from "../process/open-in-browser.ts"
import { printHint, printLine } from "../process/stdout.ts"
import { type RemoteFlags, tokenFlag, tokenOf } from "../run/remote.ts"
import { locationFlags, tokenFileFlag } from "./flags.ts"
import { portFlag, rootFlag, runServe, type ServeFlags } from "./serve.ts"

/** Defines `tackle web`. */
export function defineWeb(web: Command): void {
  locationFlags(web)
    .argument("[url]", "URL of a running server (default: start one)")
    .addOption(portFlag())
    .addOption(rootFlag())
    .addOption(tokenFileFlag())
    .option("--no-open", "print the link instead of opening a browser")
    .action(runWeb)
}

/** Flags for `tackle web`. */
interface WebFlags extends Pick<ServeFlags, "dir" | "verbose" | "port" | "root">, RemoteFlags {
  open: boolean
}

/** Runs `tackle web`: starts a server unless `url` is given, and opens the server's web page. */
async function runWeb(url: string | undefined, { open, ...flags }: WebFlags): Promise<void> {
  const show = (link: Link) => (open ? openBrowser(link, flags) : printLink(link))
  if (url !== undefined) return show({ address: await addressOf(url, flags), minutes: 1 })
  const options = { ...flags, host: "127.0.0.1", grace: 10, format: "text" } as const
  await runServe(options, (address) => show({ address, minutes: 10 }))
}

/** A single-use address that logs in to the web page. It is valid for `minutes`. */
interface Link {
  address: string
  minutes: number
}

async function addressOf(url: string, { tokenFile }: RemoteFlags): Promise<string> {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new UsageError(`"${url}" is not the URL of a server. Example: http://127.0.0.1:8486`)
  const { origin } = new URL(url)
  const headers = { authorization: `Bearer ${tokenOf(tokenFile)}` }
  const response = await fetch(`${origin}/ticket`, { method: "POST", headers }).catch(() => undefined)
  if (!response)
    throw new UsageError(
      `${origin} does not respond. Start the server with \`tackle serve\`, or omit the URL.`,
    )
  if (!response.ok)
    throw new UsageError(
      [401, 403].includes(response.status)
        ? `${origin} does not accept the token. Pass the server's token file with --token-file.`
        : `${origin} responded with status ${response.status}. Check that a Tackle server is running there.`,
    )
  const { ticket } = (await response.json()) as { ticket: string }
  return `${origin}/#ticket=${ticket}`
}

/**
 * Opens the address in a browser, or prints it if no browser can be opened. The browser receives the path of a private
 * page that redirects to the address, because other users on the machine can see process arguments, and the address
 * would log them in.
 */
function openBrowser(link: Link, flags: RemoteFlags): void {
  const { address } = link
  const page = join(defaultDataDirectory(process.env), "open-page.html")
  mkdirSync(dirname(page), { recursive: true, mode: 0o700 })
  rmSync(page, { force: true })
  writeFileSync(page, leadingTo(address), { mode: 0o600, flag: "wx" })
  const child = openInBrowser(page, {
    worktree: findWorktree(process.cwd()),
    searchPath: process.env.PATH ?? "",
  })
  if (!child) {
    printLink(link)
    return
  }
  child.once("error", () => printLink(link))
  child.once("exit", (code) => {
    if (code !== 0) printLink(link)
  })
  printHint(`If no browser opens: tackle web --no-open${tokenFlag(flags)} ${new URL(address).origin}`)
}

function leadingTo(address: string): string {
  return `<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${address}">
<title>Tackle</title>
<p><a href="${address}">Open Tackle</a>. This link works once.</p>
`
}

function printLink({ address, minutes }: Link): void {
  printLine(`Open this single-use link in a browser within ${counted(minutes, "minute")}: ${address}`)
}
