/** What is known of the text around a place of an answer: whether a call that begins there is meant as one. */
export interface Surroundings {
  /** Takes note of text that was read as text. */
  pass(text: string): void
  /** Takes note of a call that was read as an example. */
  passExample(text: string): void
  /** A call was read: what follows begins afresh, as on a new line. */
  afterCall(): void
  /** `next`, the character here, is in a code fence, inline code, a quotation, a block that quotes, or thoughts. */
  isQuoted(next: string): boolean
  /** Only white space stands before this place on its line. */
  atLineStart(): boolean
  /** The text leads over to an example: "For example:". Holds until other text comes. */
  introducesExample(): boolean
}

/** Elements whose content is not the answer itself, where one begins a line. */
const quotingElements = ["think", "thinking", "reasoning", "example", "examples", "pre", "code"]

const openingElement = new RegExp(`^\\s*<(${quotingElements.join("|")})>$`, "i")
const fenceLine = /^\s*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})([^`]*)$/
const quotationMark = /["'“‘«‹„]$/
/** How a sentence ends that leads over to an example of a call. */
const announcement =
  /(\b(for example|for instance|(here is|here's|as|just|only) an example|example (tool )?calls?|syntax|looks? like( this| so)?|(the|this|following) format|(you|one|they) (would|could|should|can|might) (write|say|send|use)|would (be|look|be written))|\be\.g\.)\s*[,:]*$/i

/** Longer lines are not looked at further back than this, in characters. */
const lineLimit = 2_000

/** Follows an answer's Markdown, character by character. */
export function createSurroundings(): Surroundings {
  let line = ""
  let lastLine = ""
  let fence: string | undefined
  /** The end of the element that quotes. */
  let closing: string | undefined
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
    if (character !== ">" || fence !== undefined) return
    if (closing === undefined) {
      const element = openingElement.exec(line)?.[1]
      if (element) closing = `</${element.toLowerCase()}>`
    } else if (line.toLowerCase().endsWith(closing)) closing = undefined
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
      callBefore = true
    },
    isQuoted(next) {
      if (next !== "`") settleBackticks()
      return (
        fence !== undefined ||
        closing !== undefined ||
        codeOpen > 0 ||
        quotationMark.test(line) ||
        /^\s*>/.test(line) ||
        (/^(\t| {4})\s*$/.test(line) && !callBefore)
      )
    },
    atLineStart: () => line.trim() === "",
    introducesExample() {
      inExample ||= announcesExample()
      return inExample
    },
  }
}
