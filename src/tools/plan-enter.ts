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
      question: "Plan first? The project is only read until you have seen and approved a plan.",
      header: "Plan mode",
      options: [
        { label: "Yes, plan first", description: "go into plan mode" },
        { label: "No, go on", description: "work without a plan" },
      ],
    })
    if (!agreed)
      return modeRefused(
        said,
        "They do not want to plan first. Go on with the task as it is, and do not ask again.",
      )
    return {
      title: "plan mode",
      output: "The person agreed: the session goes on in plan mode.",
      metadata: { agent: "plan", file },
      handover: {
        agent: "plan",
        message: `You are in plan mode now. Find out what the plan needs, write it to ${file}, the one file you may write here, and then call plan_exit.`,
      },
    }
  },
})
