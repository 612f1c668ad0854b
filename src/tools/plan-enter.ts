import * as z from "zod"
import { define } from "../tool/tool.ts"
import { readText } from "../util/file-system.ts"
import { askForMode, modeRefused } from "./plan/ask-for-mode.ts"

/** Asks the person to plan first. With their yes the session goes on as the plan agent. */
export const planEnterTool = define("plan_enter", {
  description: readText(new URL("./plan-enter.md", import.meta.url)),
  parameters: z.object({}),
  access: "meta",
  serial: true,
  async execute(_, ctx) {
    const { agreed, said, file } = await askForMode(ctx, {
      question: "Plan first? The project stays read-only until you approve a plan.",
      header: "Plan mode",
      options: [
        { label: "Yes, plan first", description: "switch to plan mode" },
        { label: "No, continue", description: "work without a plan" },
      ],
    })
    if (!agreed)
      return modeRefused(
        said,
        "The user does not want a plan first. Continue with the task, and do not ask again.",
      )
    return {
      title: "plan mode",
      output: "The user agreed. The session continues in plan mode.",
      metadata: { agent: "plan", file },
      handover: {
        agent: "plan",
        message: `You are now in plan mode. Find out what the plan needs, write it to ${file} (the only file you may write), then call plan_exit.`,
      },
    }
  },
})
