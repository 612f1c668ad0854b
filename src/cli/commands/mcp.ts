import { McpServerError } from "../../mcp/errors.ts"
import type { TackleOptions } from "../../runtime/options.ts"
import { errorMessage } from "../../util/errors.ts"
import { interruptible } from "../interrupt.ts"
import { warn } from "../notice.ts"
import { openTackle } from "../open-tackle.ts"
import { type FormatFlags, openPlace, type Place } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { oneLine } from "../view/visible.ts"

/** `tackle mcp list`: starts every MCP server, and shows what it offers or why it does not. */
export async function listMcpServers(flags: FormatFlags): Promise<void> {
  const servers = await interruptible(async (signal) => {
    const place = await openPlace(flags)
    const tackle = await openTackle(place, {}, { onFault: tellOthers(place) })
    try {
      return await tackle.mcpServers({ signal })
    } finally {
      await tackle.close()
    }
  })
  if (flags.format === "json") return printJson({ servers })
  if (servers.length === 0)
    return printLine('No MCP servers are in use: "mcp" in the configuration names them.')
  const room = process.stdout.isTTY ? process.stdout.columns - 2 : Number.POSITIVE_INFINITY
  for (const { id, status, tools, problem } of servers) {
    const count = `${tools.length} ${tools.length === 1 ? "tool" : "tools"}`
    printLine(`${oneLine(id, room)}  ${status}${status === "connected" ? `, ${count}` : ""}`)
    if (problem !== undefined) printLine(`  ${oneLine(problem, room)}`)
    for (const tool of tools) {
      const left = room - tool.id.length - 2
      printLine(`  ${tool.id}  ${oneLine(tool.description, Math.max(left, shortest))}`)
    }
  }
}

/** So much of a description is shown however long the id is, in columns. */
const shortest = 20

/** Why a server is not there stands in the list. */
function tellOthers({ hide }: Place): NonNullable<TackleOptions["onFault"]> {
  return (message, error) => {
    if (!(error instanceof McpServerError)) warn(hide(`${message}: ${errorMessage(error)}`))
  }
}
