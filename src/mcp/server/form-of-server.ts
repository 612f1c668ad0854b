import { isSpecType, type ServerContext } from "@modelcontextprotocol/server"
import type { AskForm } from "../../tool/ask-person.ts"
import { newId } from "../../util/id.ts"
import type { Forms } from "./forms.ts"

/** Shows what an MCP server behind the engine asks to the person at the client, in its own form. Nothing without forms. */
export function formOf(forms: Forms, context: ServerContext): { form?: AskForm } {
  if (!forms.forCall("", context)) return {}
  return {
    async form({ message, requestedSchema }, signal) {
      const form = { message, requestedSchema }
      if (!isSpecType.ElicitRequestFormParams(form))
        throw new TypeError("The form is none of the protocol's.")
      const id = newId("per")
      const ask = forms.forCall(id, context)
      if (!ask) return { action: "decline" }
      const withdraw = () => forms.withdraw(id)
      signal.addEventListener("abort", withdraw, { once: true })
      try {
        const answer = ask(form)
        if (signal.aborted) withdraw()
        return await answer
      } finally {
        signal.removeEventListener("abort", withdraw)
      }
    },
  }
}
