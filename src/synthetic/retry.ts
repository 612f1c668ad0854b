import type { LanguageModelV4Message, LanguageModelV4ToolChoice } from "@ai-sdk/provider"
import type { Dialect, MalformedCall, SyntheticTool } from "./dialect.ts"

/** How an answer ended, as far as asking again depends on it. */
export interface AnswerOutcome {
  /** All that the model wrote. */
  text: string
  /** How many calls can be run. */
  calls: number
  malformed: readonly MalformedCall[]
  /** It reached the output limit. */
  cut: boolean
}

/** How often a model is asked again in one step, where the caller does not say. */
export const defaultRetries = 2

/**
 * What is put behind the prompt to have the model mend its answer; undefined where there is nothing to mend: some call
 * can be run (what is wrong with the others then comes as their results), or the answer was cut off.
 */
export function retryMessages(
  outcome: AnswerOutcome,
  options: {
    dialect: Dialect
    tools: readonly SyntheticTool[]
    choice?: LanguageModelV4ToolChoice | undefined
  },
): LanguageModelV4Message[] | undefined {
  const { text, calls, malformed, cut } = outcome
  const { dialect, tools, choice } = options
  const mustCall = choice?.type === "required" || choice?.type === "tool"
  if (calls > 0 || cut || (malformed.length === 0 && !mustCall)) return undefined
  const faults = malformed.map(
    (call) => `This call was not carried out, since it ${call.reason}:\n${call.text}`,
  )
  if (faults.length === 0) faults.push("The answer holds no call, and one is needed.")
  const named = choice?.type === "tool" ? choice.toolName : malformed.find(({ tool }) => tool)?.tool
  const tool = tools.find(({ name }) => name === named) ?? tools[0]
  const form = tool === undefined ? "" : dialect.write(tool.name, {})
  const answer = text.trim() || "(no text)"
  return [
    { role: "assistant", content: [{ type: "text", text: answer }] },
    {
      role: "user",
      content: [
        {
          type: "text",
          text: `${faults.join("\n\n")}\n\n${dialect.instructions}\n\n${form}\n\nAnswer again, with the call written in this form and nothing else.`,
        },
      ],
    },
  ]
}
