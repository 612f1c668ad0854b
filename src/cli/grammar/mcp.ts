import type { Command } from "commander"
import type { AddServerFlags, AuthFlags } from "../commands/mcp-servers.ts"
import type { FormatFlags, PlaceFlags } from "../setup.ts"
import { collect, format, place } from "./flags.ts"

/** The command line of `tackle mcp …`. */
export function defineMcp(program: Command): void {
  const mcp = program.command("mcp").description("MCP servers, whose tools are offered like others")
  place(mcp.command("list"))
    .description("start every MCP server, and show its tools or why it is not there")
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("../commands/index.ts")).mcp.listMcpServers(flags))
  place(mcp.command("add"))
    .description("write an MCP server into the project's config: an address, or a program behind --")
    .argument("<id>", "what its tools' names begin with")
    .argument("<command...>", "address, or program with its arguments")
    .option("--user", "into your own config, for every project")
    .option("--env <name=value>", "a variable of the program (repeatable)", collect)
    .option("--header <name=value>", "a header of every request (repeatable)", collect)
    .action(async (id: string, command: string[], flags: AddServerFlags) =>
      (await import("../commands/index.ts")).mcpServers.addMcpServer(id, command, flags),
    )
  place(mcp.command("auth"))
    .description("sign in to an MCP server, in your browser")
    .argument("<id>", "the server, as the config names it")
    .option("--no-browser", "only print the address")
    .action(async (id: string, flags: AuthFlags) =>
      (await import("../commands/index.ts")).mcpServers.signInToServer(id, flags),
    )
  place(mcp.command("logout"))
    .description("forget that you signed in to an MCP server")
    .argument("<id>", "the server, as the config names it")
    .action(async (id: string, flags: PlaceFlags) =>
      (await import("../commands/index.ts")).mcpServers.signOutOfServer(id, flags),
    )
}
