import { Lexer, type MarkedToken, type Token, type Tokens } from "marked"
import { type ComponentChildren, h } from "preact"
import { useMemo } from "preact/hooks"
import { memo } from "./memo.ts"
import { notify } from "./notices.tsx"

/** Renders Markdown. HTML is shown as text, and images as links. Only changed blocks render again. */
export const Markdown = memo(({ text }: { text: string }) => {
  const tokens = useMemo(() => tokensOf(text), [text])
  return (
    <div class="markdown">
      {tokens.map((token, index) => (
        <Block key={`${index}`} raw={token.raw} token={token} />
      ))}
    </div>
  )
})

function tokensOf(text: string): Token[] {
  try {
    return Lexer.lex(text, { gfm: true, breaks: true })
  } catch {
    // The lexer is recursive, so deep nesting can exceed the size of the call stack.
    return [{ type: "text", raw: text, text }]
  }
}

interface BlockProps {
  raw: string
  token: Token
}

// The token is a new object after each change to the text, so its source determines whether the block renders again.
const Block = memo(({ raw, token }: BlockProps) => {
  const content = useMemo(() => nodeOf(token as MarkedToken), [raw])
  return content ? <div>{content}</div> : null
})

const elements = { blockquote: "blockquote", del: "del", em: "em", paragraph: "p", strong: "strong" } as const

/** Returns a token as elements. Creates no HTML from texts, so a text cannot add elements or attributes. */
function nodeOf(token: MarkedToken): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null
    case "br":
    case "hr":
      return h(token.type, null)
    case "blockquote":
    case "del":
    case "em":
    case "paragraph":
    case "strong":
      return h(elements[token.type], null, nodesOf(token.tokens))
    case "heading":
      return h(`h${token.depth}`, null, nodesOf(token.tokens))
    case "codespan":
      return <code>{token.text}</code>
    case "code":
      return <Code {...token} />
    case "link":
      return <Link href={token.href}>{nodesOf(token.tokens)}</Link>
    case "image":
      // Shown as a link, because an image would send a request to its server.
      return <Link href={token.href}>image: {token.text || token.href}</Link>
    case "list":
      return h(
        token.ordered ? "ol" : "ul",
        { start: token.ordered && token.start !== 1 ? token.start : undefined },
        token.items.map(({ tokens }) => <li>{nodesOf(tokens)}</li>),
      )
    case "checkbox":
      return (
        <input
          type="checkbox"
          disabled
          checked={token.checked}
          aria-label={token.checked ? "done" : "not done"}
        />
      )
    case "table":
      return (
        <table>
          <thead>{rowOf(token.header)}</thead>
          <tbody>{token.rows.map(rowOf)}</tbody>
        </table>
      )
    case "text":
      return token.tokens ? nodesOf(token.tokens) : withCharacters(token.text)
    default:
      return token.type === "html" || token.type === "escape" ? token.text : null
  }
}

/** Nesting depth above which the source is shown. A browser cannot show thousands of nested elements. */
const maxDepth = 40
let depth = 0

function nodesOf(tokens: readonly Token[]): ComponentChildren {
  depth += 1
  const nodes = tokens.map((token) => (depth > maxDepth ? token.raw : nodeOf(token as MarkedToken)))
  depth -= 1
  return nodes
}

function rowOf(cells: readonly Tokens.TableCell[]): ComponentChildren {
  return (
    <tr>
      {cells.map(({ tokens, header, align }) =>
        h(header ? "th" : "td", { align: align ?? undefined }, nodesOf(tokens)),
      )}
    </tr>
  )
}

/** Replaces character references such as `&lt;`. Passes only these references to the HTML parser. */
function withCharacters(text: string): string {
  return text.replace(
    /&#?\w+;/g,
    (reference) => new DOMParser().parseFromString(reference, "text/html").body.textContent || reference,
  )
}

function Link({ href, children }: { href: string; children: ComponentChildren }) {
  const address = withCharacters(href)
  const isSafe = /^(?:https?|mailto):/i.test(address)
  return (
    <a href={isSafe ? address : undefined} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}

function Code({ lang = "", text }: Tokens.Code) {
  return (
    <div class="code">
      <div class="code-head">
        <span>{lang.split(/\s/)[0]}</span>
        <button type="button" class="quiet" onClick={() => copyText(text)}>
          Copy
        </button>
      </div>
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </div>
  )
}

/** Copies text to the clipboard, and notifies the user. */
async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    notify("Copied.")
  } catch {
    notify("The browser does not allow copying. Select the text instead.", "error")
  }
}
