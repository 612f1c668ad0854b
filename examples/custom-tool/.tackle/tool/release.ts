import { appendFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { Tool } from "tackle/tool"
import { z } from "zod"

const steps = ["build", "test", "upload"]

/** Runs for a few seconds, to show how a tool reports progress and how it ends when it is interrupted. */
export default Tool.define("release", {
  description: "Releases a version of the project. Use only if the user asked for a release.",
  parameters: z.object({
    version: z
      .string()
      .regex(/^\d+\.\d+\.\d+$/, "three numbers with dots")
      .describe("Such as 1.2.0"),
    dryRun: z.boolean().default(false).describe("Only tell what would be done"),
  }),
  access: "execute",
  serial: true,
  timeout: 60_000,
  // Rules and permission requests contain only the version: `"release": { "0.*": "deny" }`.
  ask: ({ version }) => ({ patterns: [version] }),
  async execute({ version, dryRun }, ctx) {
    for (const [index, step] of steps.entries()) {
      await ctx.metadata({ title: `${version}: ${step}`, progress: index / steps.length })
      if (!dryRun) await wait(100, undefined, { signal: ctx.abort })
    }
    if (!dryRun) await appendFile(join(ctx.directory, "RELEASES"), `${version}\n`)
    return {
      title: version,
      output: `${dryRun ? "Would release" : "Released"} ${version}: ${steps.join(", ")}.`,
    }
  },
})
