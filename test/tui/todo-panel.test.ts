import { expect, test } from "vitest"
import type { Todo } from "../../src/schema/todo.ts"
import { renderTodos } from "../../src/tui/todo-panel.ts"
import { rendered, theme } from "./components.ts"

const todo = (content: string, status: Todo["status"]): Todo => ({ content, status, priority: "medium" })

function show(todos: Todo[], { width = 80, isShort = false } = {}): string {
  const render = (columns: number) => renderTodos(todos, { width: columns, theme, isShort })
  return rendered({ render, invalidate() {} }, width)
}

/** A list of ten entries, of which the first `done` are completed. */
function ten(done: number): Todo[] {
  const status = (index: number) => (index < done ? "completed" : index === done ? "in_progress" : "pending")
  return Array.from({ length: 10 }, (_, index) => todo(`entry ${index}`, status(index)))
}

test("shows the part of a long list around the current entry", () => {
  expect(show(ten(5))).toBe(
    "  … 4 earlier\n  ☑ entry 4\n  ▸ entry 5\n  ☐ entry 6\n  ☐ entry 7\n  ☐ entry 8\n  ☐ entry 9",
  )
  expect(show(ten(0))).toMatch(/^ {2}▸ entry 0\n[\s\S]*☐ entry 5\n {2}… 4 more$/)
})

test.each([80, 40])(
  "shows the current entry and the number of completed ones on one line at %i columns",
  (width) => {
    const long = [
      todo("read", "completed"),
      todo("write ".repeat(30), "in_progress"),
      todo("test", "pending"),
    ]
    expect(show(long, { width, isShort: true })).toMatch(/^ {2}▸ write [write …]+ · 1 of 3 done$/)
  },
)

test("shows nothing if no entry is open", () => {
  expect(show([])).toBe("")
  expect(show([todo("read", "completed"), todo("write", "cancelled")])).toBe("")
})
