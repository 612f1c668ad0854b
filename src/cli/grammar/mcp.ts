import type { Command } from "commander"
import type { ServeFlags } from "../commands/mcp-serve.ts"
import type { AddServerFlags, AuthFlags } from "../commands/mcp-servers.ts"
import type { FormatFlags, PlaceFlags } from "../place.ts"
import { collect, format, names, place, placeAsItIs, port, positive } from "./flags.ts"

/** The command line of `tackle mcp …`. */
export function defineMcp(program: Command): void {
  const mcp = program.command("mcp").description("MCP servers, whose tools are offered like others")
  place(mcp.command("list"))
    .description("start every MCP server, and show its tools or why it is not there")
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("../commands/index.ts")).mcp.listMcpServers(flags))
  placeAsItIs(mcp.command("add"))
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
  place(mcp.command("serve"))
    .description("be an MCP server: offer Tackle's tools to other agents, by its rules")
    .option("--agent <name>", "whose rules and tools (default: build)")
    .option("--tools <ids>", "offer these alone, with commas between them", names)
    .option("--allow <rule>", "allow without asking: permission or permission:pattern (repeatable)", collect)
    .option("--deny <rule>", "deny: permission or permission:pattern (repeatable)", collect)
    .option("--http", "over streamable HTTP (default: on stdin and stdout)")
    .option("--port <n>", "with --http; 0: any free one (default 8485)", port)
    .option(
      "--host <address>",
      "with --http; any other than this machine's own needs a key (default 127.0.0.1)",
    )
    .option(
      "--stream <seconds>",
      "with --http: end a call's stream after that; the client comes back for the rest",
      positive,
    )
    .option("--key <key>", "with --http: what clients have to send (better: TACKLE_MCP_KEY)")
    .action(async (flags: ServeFlags) => (await import("../commands/index.ts")).mcpServe.serveMcp(flags))
}
