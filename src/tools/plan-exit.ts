import * as z from "zod"
import { define } from "../tool/tool.ts"
import { readText } from "../util/file-system.ts"
import { askForMode, modeRefused } from "./plan/ask-for-mode.ts"
import { readPlan } from "./plan/read-plan.ts"

/** Shows the person the plan. With their yes the session goes on as the build agent. */
export const planExitTool = define("plan_exit", {
  description: readText(new URL("./plan-exit.md", import.meta.url)),
  parameters: z.object({}),
  access: "meta",
  serial: true,
  async execute(_, ctx) {
    const { agreed, said, file } = await askForMode(
      ctx,
      {
        question: "Carry out this plan?",
        header: "Plan",
        options: [
          { label: "Yes, carry it out", description: "the build agent takes over" },
          { label: "No, keep planning", description: "nothing is changed" },
        ],
      },
      async (path) => ({ title: "Plan", path, text: await readPlan(path, ctx.abort) }),
    )
    if (!agreed) {
      const next =
        said === undefined
          ? "The user did not approve the plan. You are still in plan mode: ask what is missing, or stop and wait."
          : "The user did not approve the plan. You are still in plan mode: revise the plan as they ask."
      return modeRefused(said, next)
    }
    return {
      title: "plan approved",
      output: "The user approved the plan. The session continues as the build agent.",
      metadata: { agent: "build", file },
      handover: {
        agent: "build",
        message: `The user approved the plan in ${file}, and plan mode is over: you may change the project again. Carry out the plan step by step.`,
      },
    }
  },
})
