import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import type { Question, QuestionAnswers, QuestionDocument } from "../../src/schema/question.ts"
import { createQuestionCard } from "../../src/tui/question-card.ts"
import { cardTimers, keys, pause, rendered, theme } from "./components.ts"

const color: Question = {
  question: "Which color?",
  header: "Color",
  options: [{ label: "red", description: "like blood" }, { label: "green" }],
}

/** Opens a card that accepts keys. */
function open(questions: Question[], document?: QuestionDocument) {
  const given: (QuestionAnswers | undefined)[] = []
  const early: string[] = []
  const card = createQuestionCard({
    request: { id: "que_1", sessionID: "ses_1", questions, document },
    theme,
    rows: () => 20,
    onAnswer: (answers) => given.push(answers),
    onEarlyKey: (data) => early.push(data),
    requestRender() {},
  })
  card.render(80)
  card.handleInput?.("2")
  expect(early).toEqual(["2"])
  pause()
  const press = (...inputs: string[]) => {
    for (const data of inputs) card.handleInput?.(data)
  }
  return { card, given, early, press }
}

beforeEach(() => void vi.useFakeTimers({ toFake: [...cardTimers] }))
afterEach(() => void vi.useRealTimers())

describe("the question card", () => {
  test.each([80, 40])("shows the question and its options at %i columns", (width) => {
    const text = rendered(open([color]).card, width)
    expect(text).toContain("? Question: Color")
    expect(text).toMatch(
      /Which color\?\n❯ 1 {2}red\n {6}like blood\n {2}2 {2}green\n {2}3 {2}something else…/,
    )
  })

  test.each([{ pressed: ["2"] }, { pressed: [keys.down, keys.enter] }])(
    "answers with an option: $pressed",
    ({ pressed }) => {
      const { given, press } = open([color])
      press(...pressed)
      expect(given).toEqual([[["green"]]])
    },
  )

  test("answers with several options", () => {
    const { card, given, press } = open([{ ...color, multiple: true }])
    press("2", "1", " ", keys.down)
    expect(rendered(card)).toContain("[x] green")
    press(" ", " ", keys.up, " ", keys.enter)
    expect(given).toEqual([[["red", "green"]]])
  })

  test("answers in the user's own words, typed or pasted", () => {
    const { card, given, press } = open([color])
    press("3", ..."dark ", keys.paste("blue"))
    expect(rendered(card)).toContain("> dark blue")
    press(keys.enter)
    expect(given).toEqual([[["dark blue"]]])
  })

  test("says that an empty text skips the question only if no option is chosen", () => {
    const { card, press } = open([{ ...color, multiple: true }])
    press("3")
    expect(rendered(card)).toContain("Enter answers, or skips if empty · Esc goes back")
    press(keys.escape, "1", "3")
    expect(rendered(card)).toContain("Enter answers · Esc goes back")
  })

  test("returns from the user's own words to the options with Escape", () => {
    const { card, given, press } = open([color])
    press("3", "x", keys.escape)
    expect(rendered(card)).toContain("1  red")
    expect(given).toEqual([])
  })

  test("asks several questions one after another", () => {
    const { card, given, press } = open([color, { question: "Why?" }])
    expect(rendered(card)).toContain("? Question 1 of 2")
    press("1")
    expect(rendered(card)).toContain("? Question 2 of 2")
    press(..."because", keys.enter)
    expect(given).toEqual([[["red"], ["because"]]])
  })

  test("dismisses all questions with Escape", () => {
    const { given, press } = open([color, { question: "Why?" }])
    press("1", keys.escape)
    expect(given).toEqual([undefined])
  })

  test("shows a document, which scrolls", () => {
    const text = Array.from({ length: 40 }, (_, line) => `- step ${line}`).join("\n")
    const { card, press } = open([color], { title: "Plan", path: "plan.md", text: `# Steps\n\n${text}` })
    expect(rendered(card)).toContain("Plan (plan.md)")
    expect(rendered(card)).toContain("step 1\n")
    expect(rendered(card).split("\n").length).toBeLessThanOrEqual(20)
    for (let page = 0; page < 10; page++) press(keys.pageDown)
    expect(rendered(card)).toContain("step 39\n")
  })

  test("accepts no answer after the questions were answered elsewhere", () => {
    const { card, given, early, press } = open([color])
    card.showEnd("Answered elsewhere.")
    press("1")
    expect(given).toEqual([])
    expect(early).toEqual(["2", "1"])
    expect(rendered(card)).toContain("Answered elsewhere.")
  })
})
