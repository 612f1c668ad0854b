/** An MCP server with two tools and a resource for a list of books. */
import { createInterface } from "node:readline"

const books = ["The Sea Around Us", "The Old Man and the Sea", "Walden"]

const text = (words) => ({ content: [{ type: "text", text: words }] })
const textOf = (name) => ({ type: "object", properties: { [name]: { type: "string" } }, required: [name] })

const tools = [
  {
    name: "find_book",
    description: "Finds books whose title has a word in it.",
    inputSchema: textOf("word"),
    run: ({ word }) =>
      text(books.filter((title) => title.toLowerCase().includes(word.toLowerCase())).join("\n") || "None."),
  },
  {
    name: "lend_book",
    description: "Lends a book to a reader.",
    inputSchema: textOf("title"),
    run({ title }) {
      const at = books.indexOf(title)
      if (at < 0) return { ...text(`${title} is not on the shelf.`), isError: true }
      books.splice(at, 1)
      return text(`${title} is lent.`)
    },
  },
]

/** Returns the results of requests, by method. */
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, resources: {} },
    serverInfo: { name: "shelf", version: "1.0.0" },
  }),
  "tools/list": () => ({ tools: tools.map(({ run, ...described }) => described) }),
  "tools/call": ({ name, arguments: args }) => tools.find((tool) => tool.name === name).run(args),
  "resources/list": () => ({ resources: [{ uri: "shelf://books", name: "all books" }] }),
  "resources/templates/list": () => ({ resourceTemplates: [] }),
  "resources/read": ({ uri }) => ({ contents: [{ uri, text: books.join("\n") }] }),
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  // A notification has no id and gets no response.
  if (id === undefined) return
  const answer = answers[method]
  const outcome = answer
    ? { result: answer(params) }
    : { error: { code: -32601, message: `There is no ${method}.` } }
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...outcome })}\n`)
})
