/** Splits Markdown that arrives in pieces into blocks, such as paragraphs, lists and tables. */
export interface MarkdownBlocks {
  /** Adds text. Returns the blocks that this text completes. */
  push(text: string): string[]
  /** Returns the block that is not complete yet. */
  rest(): string
  /** Returns the remaining blocks, and resets the splitter for new text. */
  end(): string[]
}

const fencePattern = /^\s*(?:(?:[-*+]|\d+[.)])\s+)*(`{3,}|~{3,})/
const listPattern = /^\s*(?:[-*+]|\d{1,9}[.)])\s/

/**
 * Creates a splitter. A block ends at an empty line outside a code block. Indented lines after a list belong to the
 * list.
 */
export function createMarkdownBlocks(): MarkdownBlocks {
  /** Complete lines of the current block. */
  let lines: string[] = []
  /** Line that is not complete yet. */
  let open = ""
  let fence: string | undefined

  /** Adds a complete line. Returns the block that the line completes, or an empty string if it completes no block. */
  function take(line: string): string {
    const before = lines.at(-1)
    const isList = listPattern.test(lines[0] ?? "")
    const starts = before === "" && line !== "" && fence === undefined && !(isList && /^\s/.test(line))
    const block = starts ? endBlock() : ""
    const [, mark] = fencePattern.exec(line) ?? []
    if (fence === undefined) fence = mark
    else if (mark?.startsWith(fence) && line.trim() === mark) fence = undefined
    lines.push(line.trim() === "" ? "" : line)
    // A paragraph or heading is complete at the next empty line, without waiting for the next block.
    return block === "" && line.trim() === "" && fence === undefined && !isList ? endBlock() : block
  }

  function endBlock(): string {
    const block = lines.join("\n").trimEnd()
    lines = []
    fence = undefined
    return block
  }

  return {
    push(text) {
      const [first = "", ...more] = text.split("\n")
      const complete = [open + first, ...more]
      open = complete.pop() ?? ""
      return complete.map(take).filter((block) => block !== "")
    },
    rest: () => [...lines, open].join("\n"),
    end() {
      const blocks = [take(open), endBlock()]
      open = ""
      return blocks.filter((block) => block !== "")
    },
  }
}
