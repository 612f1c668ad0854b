import { spawn } from "node:child_process"
import type { Command } from "commander"
import { UsageError } from "../../util/errors.ts"
import { printLine } from "../process/stdout.ts"
import { type RemoteFlags, tokenOf } from "../run/remote.ts"
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

/** Flags of `tackle web`. */
interface WebFlags extends Pick<ServeFlags, "dir" | "verbose" | "port" | "root">, RemoteFlags {
  open: boolean
}

/** Runs `tackle web`: starts a server unless `url` names one, and opens its web page. */
async function runWeb(url: string | undefined, { open, ...flags }: WebFlags): Promise<void> {
  const show = (address: string) => (open ? openBrowser(address) : printLink(address))
  if (url !== undefined) return show(await addressOf(url, flags))
  await runServe({ ...flags, host: "127.0.0.1", grace: 10, format: "text" }, show)
}

async function addressOf(url: string, { tokenFile }: RemoteFlags): Promise<string> {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new UsageError(`"${url}" is not the URL of a server. Example: http://127.0.0.1:8486`)
  const { origin } = new URL(url)
  const headers = { authorization: `Bearer ${tokenOf(tokenFile)}` }
  const response = await fetch(`${origin}/ticket`, { method: "POST", headers }).catch(() => undefined)
  if (!response)
    throw new UsageError(`No answer from ${origin}. Start the server with \`tackle serve\`, or omit the URL.`)
  if (!response.ok)
    throw new UsageError(
      `${origin} refused the login with status ${response.status}. Name its token file with --token-file.`,
    )
  const { ticket } = (await response.json()) as { ticket: string }
  return `${origin}/#ticket=${ticket}`
}

function openBrowser(address: string): void {
  const program = process.platform === "darwin" ? "open" : "xdg-open"
  const child = spawn(program, [address], { detached: true, stdio: "ignore" })
  child.once("error", () => printLink(address))
  child.once("exit", (code) => {
    if (code !== 0) printLink(address)
  })
  child.unref()
}

function printLink(address: string): void {
  printLine(`Open this link in a browser. It works once: ${address}`)
}
