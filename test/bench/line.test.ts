import { expect, test } from "vitest"
import { chart } from "../../bench/chart.ts"
import { type Line, line, type Runs } from "../../bench/line.ts"
import { median } from "../../bench/statistics.ts"
import { table } from "../../bench/table.ts"

function example(runs: [string, number[] | string][], target: Line["target"]): Line {
  const all: Runs<number> = new Map(runs)
  return line({ row: "r", title: "A & B", unit: "time", runs: all, figure: (run) => run, target })
}

const machine = { node: "v24.0.0", platform: "linux", arch: "x64", cores: 2 }

test("the median is the middle value, or the mean of the two middle values", () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([4, 1, 2, 9])).toBe(3)
  expect(() => median([])).toThrow(RangeError)
})

test("compares a ratio with the other subject's median and a figure with the limit", () => {
  const runs: [string, number[]][] = [
    ["floor", [10, 11, 30]],
    ["tackle", [22, 21, 23]],
  ]
  expect(example(runs, { kind: "ratio", limit: 2, of: "floor" }).result).toEqual({ value: 2, ok: true })
  expect(example(runs, { kind: "ratio", limit: 1.9, of: "floor" }).result).toEqual({ value: 2, ok: false })
  expect(example(runs, { kind: "figure", limit: 21 }).result).toEqual({ value: 22, ok: false })
})

test("compares a percentage with the required minimum and omits it from the chart", () => {
  const target = { kind: "least", limit: 99 } as const
  const share = { ...example([["tackle", [98, 100, 99.5]]], target), unit: "percent" as const }
  expect(share.result).toEqual({ value: 99.5, ok: true })
  expect(example([["tackle", [98.9]]], target).result?.ok).toBe(false)
  expect(table([share], { colour: false })).toMatch(/99\.5 % +99\.5 % +≥ 99\.0 % +ok/)
  expect(chart([share], machine)).not.toContain("A &amp; B")
})

test("has no result without both figures", () => {
  const target = { kind: "ratio", limit: 2, of: "floor" } as const
  expect(example([["floor", [10]]], target).result).toBeUndefined()
  expect(example([["tackle", [10]]], target).result).toBeUndefined()
  expect(example([["tackle", "failed: x"]], { kind: "figure", limit: 3 }).result).toBeUndefined()
})

test("the table shows the result, the peers and the reason for a failure", () => {
  const target = { kind: "ratio", limit: 2, of: "floor" } as const
  const text = table(
    [
      example(
        [
          ["floor", [10]],
          ["tackle", [15]],
          ["pi", "failed: exit 1: no model"],
        ],
        target,
      ),
      example(
        [
          ["floor", [10]],
          ["tackle", [25]],
          ["pi", [1500]],
        ],
        target,
      ),
    ],
    { colour: false },
  )
  const [head, first, second] = text.split("\n")
  expect(head).toMatch(/floor +tackle +pi +result +target/)
  expect(first).toMatch(/10\.0 ms +15\.0 ms +failed +1\.50 × floor +≤ 2 × +ok$/)
  expect(second).toMatch(/25\.0 ms +1\.50 s +2\.50 × floor +≤ 2 × +MISS$/)
  expect(text).toContain("A & B: pi failed: exit 1: no model")
})

test("the chart is well-formed and draws only measured values", () => {
  const target = { kind: "ratio", limit: 2, of: "floor" } as const
  const lines = [
    example(
      [
        ["floor", [10]],
        ["tackle", [15]],
      ],
      target,
    ),
    example(
      [
        ["floor", [10]],
        ["tackle", "failed: <x>"],
      ],
      target,
    ),
  ]
  const svg = chart(lines, machine)
  expect(svg).toContain("A &amp; B")
  expect(svg).not.toMatch(/NaN|undefined|Infinity/)
  expect(svg.match(/fill="#2f6feb"/g)).toHaveLength(2) // the legend and one bar
  expect(svg).toContain("not measured")
})
