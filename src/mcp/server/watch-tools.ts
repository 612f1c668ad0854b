import * as z from "zod"
import { pinnedPatterns } from "../../files/open-file.ts"
import { define, type Info } from "../../tool/tool.ts"
import { resolvePath } from "../../util/paths.ts"
import { readResourceID } from "../client/resources.ts"
import type { WatchedPlace } from "./file-watch.ts"
import { askForResource, whereItLeads } from "./resource-tools.ts"

/** Asks for leave to read a file, then has it watched. Its id and arguments are those of the tool that reads it whole. */
export function watchFileTool(begin: (place: WatchedPlace) => void): Info {
  return define("read", {
    description: "Watches a file for a client that wants to know when it changes.",
    parameters: z.object({ filePath: z.string() }),
    access: "read",
    async execute({ filePath }, ctx) {
      const path = resolvePath(filePath, ctx.directory)
      const real = whereItLeads(path)
      await ctx.ask({
        permission: "read",
        patterns: pinnedPatterns(path, real),
        always: ["*"],
        metadata: { filePath: path },
      })
      begin({ path, real })
      return { title: path, output: "" }
    },
  })
}

/** The same for a resource of an MCP server behind the engine. */
export function watchServerResourceTool(begin: (signal: AbortSignal) => Promise<void>): Info {
  return define(readResourceID, {
    description: "Watches a resource of an MCP server for a client that wants to know when it changes.",
    parameters: z.object({ server: z.string(), uri: z.string() }),
    access: "network",
    async execute({ server, uri }, ctx) {
      await askForResource(ctx, { server, uri })
      await begin(ctx.abort)
      return { title: `${server}: ${uri}`, output: "" }
    },
  })
}
