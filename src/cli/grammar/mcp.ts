import type { Command } from "commander"
import type { FormatFlags } from "../setup.ts"
import { format, place } from "./flags.ts"

/** The command line of `tackle mcp …`. */
export function defineMcp(program: Command): void {
  const mcp = program.command("mcp").description("MCP servers, whose tools are offered like others")
  place(mcp.command("list"))
    .description("start every MCP server, and show its tools or why it is not there")
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("../commands/index.ts")).mcp.listMcpServers(flags))
}
