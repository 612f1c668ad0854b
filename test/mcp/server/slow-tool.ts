import * as z from "zod"
import { Tool } from "../../../src/tool/index.ts"

/** A tool that waits until its call is aborted. The promises resolve at its start and at the abort. */
export function slowTool() {
  const started = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const slow = Tool.define("slow", {
    description: "Waits.",
    parameters: z.object({}),
    async execute(_args, ctx) {
      ctx.abort.addEventListener("abort", () => ended.resolve())
      started.resolve()
      await ended.promise
      return { title: "slow", output: "" }
    },
  })
  return { slow, started, ended }
}
