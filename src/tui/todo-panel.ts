import type { Todo } from "../schema/todo.ts"
import { todoLine } from "../view/call-summary.ts"
import { oneLine } from "../view/visible.ts"
import { clip } from "./card-parts.ts"
import type { Theme } from "./theme.ts"

/** Maximum number of entries that the panel shows. */
const maxEntries = 6

/**
 * Formats a session's to-do list. Returns an empty list if no entry is open. With `isShort`, shows only the current
 * entry and the number of entries that are not open. Otherwise, shows at most {@link maxEntries} entries, starting just
 * before the first open entry, or earlier near the end of the list.
 */
export function renderTodos(
  todos: readonly Todo[],
  { width, theme, isShort }: { width: number; theme: Theme; isShort: boolean },
): string[] {
  const open = todos.filter(({ status }) => status === "pending" || status === "in_progress")
  const current = open.find(({ status }) => status === "in_progress") ?? open[0]
  if (!current) return []
  const line = (todo: Todo) => {
    const paint = todo.status === "in_progress" ? theme.bold : todo.status === "pending" ? plain : theme.dim
    return clip(`  ${paint(oneLine(todoLine(todo), width - 2))}`, width)
  }
  if (isShort) {
    const count = ` · ${todos.length - open.length} of ${todos.length} done`
    return [
      clip(
        `  ${oneLine(todoLine(current), Math.max(10, width - 2 - count.length))}${theme.dim(count)}`,
        width,
      ),
    ]
  }
  const first = Math.max(
    0,
    Math.min(todos.findIndex((todo) => open.includes(todo)) - 1, todos.length - maxEntries),
  )
  const after = todos.length - first - maxEntries
  return [
    ...(first > 0 ? [clip(theme.dim(`  … ${first} earlier`), width)] : []),
    ...todos.slice(first, first + maxEntries).map(line),
    ...(after > 0 ? [clip(theme.dim(`  … ${after} more`), width)] : []),
  ]
}

function plain(text: string): string {
  return text
}
