import { useChat } from "@ai-sdk/react"
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai"
import { createElement as h } from "react"
import { createRoot } from "react-dom/client"

const { api, token, session } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)))

/** A chat as an application writes it: messages, a button to send, and one to approve a call. */
function Chat() {
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id: session,
    resume: true,
    transport: new DefaultChatTransport({ api, headers: { authorization: `Bearer ${token}` } }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  return h(
    "main",
    {},
    h("output", {}, error ? String(error) : status),
    h("button", { type: "button", onClick: () => sendMessage({ text: "make a file" }) }, "Send"),
    messages.map(({ id, role, parts }) =>
      h(
        "article",
        { key: id, "data-role": role },
        parts.map((part, index) => h(Part, { key: index, part, approve: addToolApprovalResponse })),
      ),
    ),
  )
}

function Part({ part, approve }) {
  if (part.type === "text") return h("p", {}, part.text)
  if (part.type !== "dynamic-tool") return null
  const call = h("code", {}, `${part.toolName} ${part.state}`)
  if (part.state !== "approval-requested") return call
  return h(
    "div",
    {},
    call,
    h(
      "button",
      { type: "button", onClick: () => approve({ id: part.approval.id, approved: true }) },
      "Approve",
    ),
  )
}

createRoot(document.getElementById("root")).render(h(Chat))
