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
          ? "They did not approve the plan. You stay in plan mode: ask what is missing, or stop and wait for them."
          : "They did not approve the plan. You stay in plan mode: change the plan by what they said."
      return modeRefused(said, next)
    }
    return {
      title: "plan approved",
      output: "The person approved the plan: the session goes on as the build agent.",
      metadata: { agent: "build", file },
      handover: {
        agent: "build",
        message: `The plan in ${file} was approved, and plan mode is over: you may change the project again. Carry the plan out, step by step.`,
      },
    }
  },
})
