import { useMemo, useState } from "preact/hooks"
import { counted } from "../src/util/words.ts"
import { diffCount } from "../src/view/call-summary.ts"
import { displayPath } from "../src/view/display-path.ts"
import { memo } from "./memo.ts"

/** Number of lines of a long diff that are shown at first. */
const shortLines = 60

/** A unified diff with line numbers. */
export const DiffView = memo(({ diff, worktree }: { diff: string; worktree: string }) => {
  const files = useMemo(() => parseDiff(diff), [diff])
  if (files.length === 0)
    return (
      <pre class="diff-raw" tabIndex={0}>
        {diff}
      </pre>
    )
  return (
    <div class="diffs">
      {files.map((file, index) => (
        <FileDiff
          key={`${index}`}
          file={file}
          worktree={worktree}
          count={files.length === 1 ? diffCount(diff) : ""}
        />
      ))}
    </div>
  )
})

interface Line {
  kind: "added" | "removed" | "same" | "gap"
  before?: number
  after?: number
  text: string
}

function FileDiff({ file, worktree, count }: { file: ParsedDiff; worktree: string; count: string }) {
  const [isLong, setLong] = useState(false)
  const { lines } = file
  const shown = isLong ? lines : lines.slice(0, shortLines)
  const name = nameOf(file, worktree)
  return (
    <figure class="diff">
      <figcaption>
        <span class="path">{name}</span>
        {count && <span class="count">{count}</span>}
      </figcaption>
      <div class="diff-scroll" tabIndex={0} role="region" aria-label={`Changes in ${name}`}>
        <table>
          <tbody>
            {shown.map(({ kind, before, after, text }, index) => (
              <tr key={`${index}`} class={kind}>
                <td class="number" data-line={before ?? ""} />
                <td class="number" data-line={after ?? ""} />
                <td class="sign" aria-hidden="true">
                  {kind === "added" ? "+" : kind === "removed" ? "−" : ""}
                </td>
                <td class="text">
                  {kind === "added" && <span class="visually-hidden">added: </span>}
                  {kind === "removed" && <span class="visually-hidden">removed: </span>}
                  {text}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {lines.length > shown.length && (
        <button type="button" class="more-lines" onClick={() => setLong(true)}>
          Show {counted(lines.length - shown.length, "more line")}
        </button>
      )}
    </figure>
  )
}

function nameOf({ before, after }: ParsedDiff, worktree: string): string {
  const name = after === "/dev/null" ? before : after
  return displayPath(name.replace(/^[ab]\//, ""), worktree)
}

/** The changes in one file. */
interface ParsedDiff {
  before: string
  after: string
  lines: Line[]
}

/** Returns the files in a unified diff, or an empty list if the text is not a diff. */
function parseDiff(diff: string): ParsedDiff[] {
  const files: ParsedDiff[] = []
  let [before, after] = [0, 0]
  // Number of remaining lines in the current hunk. It determines whether "--- x" is a removed line or a file name.
  let [oldLeft, newLeft] = [0, 0]
  for (const line of diff.split("\n")) {
    const file = files.at(-1)
    const text = line.slice(1)
    const part = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line)
    if (file && line.startsWith("\\")) file.lines.push({ kind: "gap", text: line.slice(2) })
    else if (file && oldLeft + newLeft > 0) {
      const [isAdded, isRemoved] = [line.startsWith("+"), line.startsWith("-")]
      if (isAdded) file.lines.push({ kind: "added", after, text })
      else if (isRemoved) file.lines.push({ kind: "removed", before, text })
      else file.lines.push({ kind: "same", before, after, text })
      if (!isAdded) [before, oldLeft] = [before + 1, oldLeft - 1]
      if (!isRemoved) [after, newLeft] = [after + 1, newLeft - 1]
    } else if (file && part) {
      if (file.lines.length > 0) file.lines.push({ kind: "gap", text: "⋯" })
      ;[before, after] = [Number(part[1]), Number(part[3])]
      ;[oldLeft, newLeft] = [Number(part[2] ?? 1), Number(part[4] ?? 1)]
    } else if (line.startsWith("--- ")) files.push({ before: nameIn(line), after: "", lines: [] })
    else if (file && line.startsWith("+++ ")) file.after = nameIn(line)
  }
  return files.filter(({ lines }) => lines.length > 0)
}

/** Returns the name in a line such as `--- a/src/cart.ts`. A tab and a time may follow the name. */
function nameIn(line: string): string {
  return line.slice(4).split("\t")[0] ?? ""
}
