import type { TackleOptions } from "../../engine/options.ts"
import { enabledServers } from "../../mcp/client/config.ts"
import { McpServerError } from "../../mcp/client/errors.ts"
import type { McpServerStatus } from "../../mcp/client/pool.ts"
import { errorMessage } from "../../util/errors.ts"
import { exitCode } from "../exit.ts"
import { interruptible } from "../interrupt.ts"
import { warn } from "../notice.ts"
import { openTackle } from "../open-tackle.ts"
import { type FormatFlags, openPlace, type Place } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { createStatusLine } from "../view/status-line.ts"
import { oneLine, wrapped } from "../view/visible.ts"

/** Time limit for each server, in milliseconds. The `timeout` of a server takes precedence. */
const limitMs = 10_000

/** `tackle mcp list`: starts every MCP server, and shows what it offers or why it does not, as soon as that is known. */
export async function listMcpServers(flags: FormatFlags): Promise<void> {
  const servers = await interruptible(async (signal) => {
    const place = await openPlace(flags)
    const tackle = await openTackle(place, {}, { onProblem: tellOthers(place) })
    const waiting = new Set(enabledServers(place.config.config.mcp).map(({ id }) => id))
    const status = createStatusLine(process.stderr, () => true)
    const tellWaiting = () =>
      status.set(
        waiting.size === 0 ? undefined : { kind: "calls", text: `waiting for ${[...waiting].join(", ")}` },
      )
    tellWaiting()
    try {
      const look = (server: McpServerStatus) => {
        // What is known of a server that was not waited for is no answer.
        if (signal.aborted) return
        status.clear()
        waiting.delete(server.id)
        if (flags.format === "text") show(server)
        tellWaiting()
      }
      return await tackle.mcpServers({ signal, limitMs, onStatus: look })
    } finally {
      status.set(undefined)
      await tackle.close()
    }
  })
  if (servers.some(({ status }) => status === "failed")) process.exitCode = exitCode.failed
  if (flags.format === "json") return printJson({ servers })
  if (servers.length === 0) printLine('No MCP servers are in use: "mcp" in the configuration names them.')
}

function show({ id, status, tools, problem }: McpServerStatus): void {
  const room = process.stdout.isTTY ? process.stdout.columns - 2 : Number.POSITIVE_INFINITY
  const count = `${tools.length} ${tools.length === 1 ? "tool" : "tools"}`
  printLine(`${oneLine(id, room)}  ${status}${status === "connected" ? `, ${count}` : ""}`)
  if (problem !== undefined) for (const line of wrapped(problem, room)) printLine(`  ${line}`)
  for (const tool of tools) {
    const left = room - tool.id.length - 2
    printLine(`  ${tool.id}  ${oneLine(tool.description, Math.max(left, shortest))}`)
  }
}

/** So much of a description is shown however long the id is, in columns. */
const shortest = 20

/** Why a server is not there stands in the list. */
function tellOthers({ hide }: Place): NonNullable<TackleOptions["onProblem"]> {
  return (message, error) => {
    if (!(error instanceof McpServerError)) warn(hide(`${message}: ${errorMessage(error)}`))
  }
}
