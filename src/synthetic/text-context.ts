import { classifyLeadIn, type LeadIn } from "./mention.ts"

/** Tracks the text before a position, to decide whether a call at that position is meant as a call. */
export interface TextContext {
  /** Adds text. */
  pass(text: string): void
  /** Adds the text of a call that is only an example. */
  passExample(text: string): void
  /** Starts a new line after a call, and ends the current thinking or quoting block. */
  afterCall(): void
  /** Returns true if the next character is in a code fence, inline code, a quotation, or a quoting block. */
  isQuoted(next: string): boolean
  /** Returns the mark that ends the current thinking block, or undefined outside a thinking block. */
  thoughtsEnd(): string | undefined
  /** Returns true if the text contains a call, and only white space follows the last call. */
  followsCall(): boolean
  /** Returns true if only white space precedes the current position on its line. */
  atLineStart(): boolean
  /** Classifies the text before the current position. After an example, returns `mention` until other text follows. */
  leadIn(): LeadIn
}

/** Elements whose content is quoted if they begin a line. */
const quotingElements = [
  ...[
    "example",
    "examples",
    "pre",
    "code",
    "samp",
    "xmp",
    "q",
    "quote",
    "blockquote",
    "textarea",
    "template",
    "script",
  ],
  ...[
    "file",
    "file_content",
    "file_contents",
    "content",
    "contents",
    "document",
    "documents",
    "source",
    "snippet",
  ],
  ...["output", "stdout", "stderr", "log", "logs", "result", "results", "function_results", "tool_output"],
  ...[
    "tool_response",
    "tool_result",
    "tool_results",
    "user",
    "human",
    "message",
    "transcript",
    "history",
    "diff",
  ],
]

/** Elements that contain reasoning if they begin a line. */
const thoughtElements = ["think", "thinking", "reasoning", "seed:think"]

/**
 * A block that is not part of the answer. `opening` matches the line up to the end of the mark that opens the block.
 */
interface Block {
  opening: RegExp
  closing(name: string): string
  isThought: boolean
}

const blocks: readonly Block[] = [
  elementBlock(quotingElements, false),
  elementBlock(thoughtElements, true),
  { opening: /^\s*\[(THINK)\]$/, closing: () => "[/THINK]", isThought: true },
  { opening: /^\s*<\|(START)_THINKING\|>$/, closing: () => "<|END_THINKING|>", isThought: true },
  { opening: /(<!--)$/, closing: () => "-->", isThought: false },
]

function elementBlock(names: readonly string[], isThought: boolean): Block {
  const opening = new RegExp(`^\\s*<(${names.join("|")})(?:\\s[^<>]*)?>$`, "i")
  return { opening, closing: (name) => `</${name.toLowerCase()}>`, isThought }
}

const fenceLine = /^\s*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})([^`]*)$/
const quotationMark = /["'“‘«‹„「『《（(]$/
/** Matches text between two examples, such as "or", that makes the second one part of the same list of examples. */
const betweenExamples =
  /^\s*(?:(?:[-*+•]|\(?\d+[.)])?\s*|(?:or|and|then|oder|und|ou|et|o|y|e|of|en|или|и|lub|或|或者|和|または|또는)[,:]?\s*)$/iu

/** Maximum number of characters of the current line that are kept. */
const lineLimit = 2_000

/** Creates a tracker that reads Markdown character by character. */
export function createTextContext(): TextContext {
  let line = ""
  let lastLine = ""
  let fence: string | undefined
  let block: { closing: string; isThought: boolean } | undefined
  /** Number of backticks that opened inline code. */
  let codeOpen = 0
  let backticks = 0
  let inExample = false
  /** Text since the latest example. */
  let sinceExample = ""
  let callBefore = false

  function settleBackticks(): void {
    if (backticks === 0) return
    if (codeOpen === 0) codeOpen = backticks
    else if (codeOpen === backticks) codeOpen = 0
    backticks = 0
  }

  function endLine(): void {
    const marks = fenceLine.exec(line)
    if (fence === undefined) fence = marks?.[1]
    else if (marks?.[1]?.startsWith(fence) && marks[2]?.trim() === "") fence = undefined
    if (!/^[\s>=*_-]*$/.test(line)) lastLine = line
    line = ""
    codeOpen = 0
    backticks = 0
  }

  function next(character: string): void {
    if (character === "\n") {
      endLine()
      return
    }
    if (character === "`") backticks += 1
    else settleBackticks()
    if (line.length < lineLimit) line += character
    else line = line.slice(-lineLimit / 2) + character
    if (!/[>\]-]/.test(character) || fence !== undefined) return
    if (block !== undefined) {
      if (line.toLowerCase().endsWith(block.closing.toLowerCase())) block = undefined
      return
    }
    for (const { opening, closing, isThought } of blocks) {
      const name = opening.exec(line)?.[1]
      if (name !== undefined) block = { closing: closing(name), isThought }
    }
  }

  function pass(text: string): void {
    if (inExample) {
      sinceExample = (sinceExample + text).slice(0, 40)
      if (!betweenExamples.test(sinceExample)) inExample = false
    }
    if (text.trim() !== "") callBefore = false
    for (const character of text) next(character)
  }

  return {
    pass,
    passExample(text) {
      pass(text)
      endLine()
      inExample = true
      sinceExample = ""
    },
    afterCall() {
      endLine()
      lastLine = ""
      block = undefined
      callBefore = true
    },
    isQuoted(next) {
      if (next !== "`") settleBackticks()
      return (
        fence !== undefined ||
        block?.isThought === false ||
        codeOpen > 0 ||
        quotationMark.test(line) ||
        /^\s*[>|]/.test(line) ||
        (/^(\t| {4})\s*$/.test(line) && !callBefore)
      )
    },
    thoughtsEnd: () => (block?.isThought ? block.closing : undefined),
    followsCall: () => callBefore,
    atLineStart: () => line.trim() === "",
    leadIn() {
      if (inExample) return "mention"
      const ownLine = /^\s*(?:(?:[-*+•]|\(?\d+[.)])\s+)?$/.test(line)
      const found = classifyLeadIn({ text: ownLine ? lastLine : line, ownLine })
      return found
    },
  }
}
