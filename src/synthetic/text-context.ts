/** What is known of the text around a place of an answer: whether a call that begins there is meant as one. */
export interface TextContext {
  /** Takes note of text that was read as text. */
  pass(text: string): void
  /** Takes note of a call that was read as an example. */
  passExample(text: string): void
  /** A call was read: what follows begins afresh, as on a new line. */
  afterCall(): void
  /** `next`, the character here, is in a code fence, inline code, a quotation, or a block that quotes. */
  isQuoted(next: string): boolean
  /** What ends the thoughts that this place is in. */
  thoughtsEnd(): string | undefined
  /** Nothing but white space stands between the last call and this place. */
  followsCall(): boolean
  /** Only white space stands before this place on its line. */
  atLineStart(): boolean
  /** The text leads over to an example: "For example:". Holds until other text comes. */
  introducesExample(): boolean
}

/** Elements whose content is not the answer itself, where one begins a line. */
const quotingElements = ["example", "examples", "pre", "code"]

/** Elements with the model's thoughts, where one begins a line. */
const thoughtElements = ["think", "thinking", "reasoning", "seed:think"]

/** A block that is not the answer itself: how a line ends where it begins, and what ends it. */
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
const quotationMark = /["'“‘«‹„]$/
/** How a sentence ends that leads over to an example of a call. */
const announcement =
  /(\b(for example|for instance|(here is|here's|as|just|only) an example|example (tool )?calls?|such as|as follows|syntax|looks? like( this| so)?|(the|this|following) format|(you|one|they) (would|could|should|can|might) (write|say|send|use)|would (be|look|be written))|\be\.g\.)\s*[,:]*$/i

/** Longer lines are not looked at further back than this, in characters. */
const lineLimit = 2_000

/** Follows an answer's Markdown, character by character. */
export function createTextContext(): TextContext {
  let line = ""
  let lastLine = ""
  let fence: string | undefined
  /** The block that this place is in. */
  let block: { closing: string; isThought: boolean } | undefined
  /** Backticks that opened inline code; 0: none. */
  let codeOpen = 0
  let backticks = 0
  let inExample = false
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
    if (line.trim() !== "") lastLine = line
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

  /** By the beginning of the line itself, or else by the line before. */
  function announcesExample(): boolean {
    const current = line.trim()
    return announcement.test(current === "" ? lastLine.trimEnd() : current)
  }

  function pass(text: string): void {
    if (text.trim() !== "") {
      inExample = false
      callBefore = false
    }
    for (const character of text) next(character)
  }

  return {
    pass,
    passExample(text) {
      pass(text)
      endLine()
      inExample = true
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
    introducesExample() {
      inExample ||= announcesExample()
      return inExample
    },
  }
}
