import DOMPurify from "dompurify"
import { lexer, Marked, type Token } from "marked"
import { useMemo } from "preact/hooks"
import { memo } from "./memo.ts"
import { notify } from "./notices.tsx"

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // HTML of the model is shown as text.
    html: ({ text }) => escapeHtml(text),
    // An image would send a request to its server.
    image: ({ href, text }) => link(href, `image: ${text || href}`),
    code: ({ text, lang = "" }) =>
      `<div class="code"><div class="code-head"><span>${escapeHtml(lang.split(/\s/)[0] ?? "")}</span><button type="button" class="quiet" data-copy>Copy</button></div><pre tabindex="0"><code>${escapeHtml(text)}</code></pre></div>`,
  },
})

function link(href: string, text: string): string {
  return `<a href="${escapeHtml(href)}">${escapeHtml(text)}</a>`
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const allowed = {
  ALLOWED_TAGS:
    "a blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr input li ol p pre span strong table tbody td th thead tr ul".split(
      " ",
    ),
  ALLOWED_ATTR: ["align", "checked", "class", "data-copy", "disabled", "href", "start", "tabindex", "type"],
  // Their values are not checked as addresses.
  ADD_URI_SAFE_ATTR: ["align", "checked", "disabled", "start", "tabindex", "type"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
}

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank")
    node.setAttribute("rel", "noopener noreferrer")
  }
  if (node.tagName === "INPUT") {
    node.setAttribute("disabled", "")
    node.setAttribute("aria-label", node.hasAttribute("checked") ? "done" : "not done")
  }
})

/** Text in Markdown, without HTML, images and scripts. Only blocks that change render again. */
export const Markdown = memo(({ text }: { text: string }) => {
  const tokens = useMemo(() => lexer(text, { gfm: true, breaks: true }), [text])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the click is that of a button inside
    // biome-ignore lint/a11y/noStaticElementInteractions: the click is that of a button inside
    <div class="markdown" onClick={copyCode}>
      {tokens.map((token, index) => (
        <Block key={`${index}`} raw={token.raw} token={token} />
      ))}
    </div>
  )
})

interface BlockProps {
  raw: string
  token: Token
}

const Block = memo(({ raw, token }: BlockProps) => {
  const html = useMemo(() => DOMPurify.sanitize(marked.parser([token]), allowed), [raw])
  return html === "" ? null : <div dangerouslySetInnerHTML={{ __html: html }} />
})

/** Handles the buttons of code blocks. */
function copyCode({ target }: Event): void {
  if (!(target instanceof HTMLElement) || !target.hasAttribute("data-copy")) return
  const code = target.closest(".code")?.querySelector("code")?.textContent ?? ""
  void copyText(code)
}

/** Copies a text to the clipboard, and tells the user. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    notify("Copied.")
  } catch {
    notify("The browser does not allow copying. Select the text instead.", "error")
  }
}
