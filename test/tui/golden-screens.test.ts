import { describe, expect, onTestFinished, test } from "vitest"
import type { Reply } from "../../src/testing/reply.ts"
import { openTerminal } from "../../src/tui/open.ts"
import { until } from "../cli/run-tackle.ts"
import { startEngine } from "../session/engine.ts"
import { keys } from "./components.ts"
import { type VirtualTerminal, virtualTerminal } from "./virtual-terminal.ts"

/** A state of the interface, and how a user gets there. */
interface State {
  name: string
  /** Replies of the model. */
  script?: Reply[]
  /** Input of the user. Each text is typed after the screen shows the text before it, if any. */
  steps?: { after?: string; type: string }[]
  /** Text on the screen when the state is complete. */
  shows: string | RegExp
}

const usage = { input: 1_200, output: 80 }
const calls = (name: string, args: Record<string, unknown>): Reply => ({
  calls: [{ name, arguments: args }],
  usage,
})
const file = "export function add(a: number, b: number) {\n  return a - b\n}\n"
const answer = [
  "## Result",
  "The function `add` **subtracts**. 漢字 and 😀 keep their width.",
  "- first item with a text that is too long for a narrow screen",
  "- second item",
  "```ts\nreturn a + b\n```",
].join("\n\n")

const states: State[] = [
  { name: "first-start", shows: "? keys" },
  {
    name: "answer",
    script: [{ text: answer, usage }],
    steps: [{ type: "What is wrong?\r" }],
    shows: /return a \+ b[\s\S]*1\.3k tokens/,
  },
  {
    name: "streaming",
    script: [{ text: `${answer}\n\n`.repeat(2), pieceSize: 20, fault: "hang-mid", usage }],
    steps: [{ type: "What is wrong?\r" }],
    shows: /return a \+ b[\s\S]*working/,
  },
  {
    name: "interrupted",
    script: [{ text: answer, fault: "hang-mid", usage }],
    steps: [{ type: "What is wrong?\r" }, { after: "return a + b", type: "\u001b" }],
    shows: "The run was interrupted.",
  },
  {
    name: "permission-card",
    script: [calls("bash", { command: "npm test -- --run add", description: "Run the tests" })],
    steps: [{ type: "Run the tests\r" }],
    shows: "Press a letter",
  },
  {
    name: "diff-card",
    script: [
      calls("read", { filePath: "add.ts" }),
      calls("edit", { filePath: "add.ts", oldString: "a - b", newString: "a + b" }),
    ],
    steps: [{ type: "Repair add\r" }],
    shows: "Press a letter",
  },
  {
    name: "question-card",
    script: [
      calls("question", {
        questions: [
          {
            question: "Which rounding should the function add use for amounts in euros?",
            header: "Rounding",
            options: [
              { label: "Half up", description: "as in the invoices" },
              {
                label: "Half even",
                description: "as in the standard of the bank, which rounds to even digits",
              },
            ],
          },
        ],
      }),
    ],
    steps: [{ type: "Repair add\r" }],
    shows: /Half even[\s\S]*Press a digit/,
  },
  { name: "keys", steps: [{ type: "?" }], shows: "Esc closes" },
  {
    name: "session-picker",
    script: [{ text: "It subtracts.", usage }],
    steps: [{ type: "What is wrong with the function add?\r" }, { after: "1.3k", type: "/sessions\r" }],
    shows: "Esc closes",
  },
  {
    name: "rewind-picker",
    script: [
      { text: "It subtracts.", usage },
      { text: "It adds.", usage },
    ],
    steps: [
      { type: "What is wrong with the function add?\r" },
      { after: "subtracts", type: "Explain the repair to me\r" },
      { after: "It adds.", type: "/rewind\r" },
    ],
    shows: "Esc closes",
  },
  { name: "picker", steps: [{ type: "/theme\r" }], shows: "Esc closes" },
  {
    name: "todo-panel",
    script: [
      calls("todowrite", {
        todos: [
          { content: "Read the code", status: "completed", priority: "high" },
          { content: "Repair the function add in src/add.ts", status: "in_progress", priority: "high" },
          { content: "Run the tests", status: "pending", priority: "medium" },
        ],
      }),
      { fault: "hang" },
    ],
    steps: [{ type: "Repair add\r" }],
    shows: /working[\s\S]*Repair the function/,
  },
  {
    name: "queue",
    script: [{ fault: "hang" }],
    steps: [
      { type: "Repair add\r" },
      { after: "working", type: "use integers\r" },
      { after: "use integers", type: "then run the tests\t" },
      { after: "then run the tests", type: "not sent yet" },
    ],
    shows: /then run the tests[\s\S]*not sent yet/,
  },
  {
    name: "error",
    script: [{ status: 400, text: "The model m is not available in your region." }],
    steps: [{ type: "What is wrong?\r" }],
    shows: "not available",
  },
]

describe.each([
  { columns: 80, rows: 24 },
  { columns: 40, rows: 12 },
])("the screen of $columns by $rows", (size) => {
  test.each(states)("$name", async ({ name, script = [], steps = [], shows }) => {
    const engine = await startEngine(script, {
      files: { "add.ts": file },
      sandbox: "off",
      approvals: true,
      questions: true,
      providers: {
        test: { options: { baseURL: "http://model.example/v1", apiKey: "k" }, models: { m: {} } },
      },
      // The address in error messages does not depend on the port of the server.
      aroundFetch: (ask) => (url, init) =>
        ask(String(url).replace("http://model.example/v1", engine.server.url), init),
      permission: { "*": "ask", read: "allow", todowrite: "allow" },
    })
    const terminal = virtualTerminal(size)
    const leave = new AbortController()
    const home = engine.project.path(".home")
    const closed = openTerminal({
      ...{ api: engine.tackle, terminal, signal: leave.signal, welcome: ["Tackle in ~/shop"] },
      defaults: { model: "test/m" },
      status: { directory: engine.project.directory },
      env: { TERM: "xterm-256color", XDG_CONFIG_HOME: home, TACKLE_DATA_DIR: home },
    })
    onTestFinished(async () => {
      leave.abort()
      await closed
      await engine[Symbol.asyncDispose]()
    })
    await sees(terminal, "? keys")
    for (const { after, type } of steps) {
      if (after) await sees(terminal, after)
      for (const key of type) terminal.press(key === "\r" ? keys.enter : key)
    }
    const screen = await sees(terminal, shows)
    expect(await terminal.wrappedLines()).toEqual([])
    const { columns, rows } = size
    const steady = screen
      .replace(/working · \d+ s/, "working · 0 s")
      .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "2026-01-02 03:04")
    await expect(`${steady}\n`).toMatchFileSnapshot(`golden/${name}-${columns}x${rows}.txt`)
  })
})

/** Number of equal screens, one after another, after which a screen counts as complete. */
const equalScreens = 8

/** Waits until the screen shows a text and no longer changes. Returns the screen. */
async function sees(terminal: VirtualTerminal, text: string | RegExp): Promise<string> {
  let screen = ""
  let equal = 0
  await until(`${text} on the screen`, async () => {
    const before = screen
    screen = (await terminal.screen()).join("\n").trimEnd()
    equal = before === screen ? equal + 1 : 0
    return equal >= equalScreens && (typeof text === "string" ? screen.includes(text) : text.test(screen))
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${screen}`)
  })
  return screen
}
