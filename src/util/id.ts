/** One prefix per noun that is stored or announced. */
export type IdPrefix = "ses" | "msg" | "prt" | "per" | "que" | "gra" | "job" | "call" | "eng" | "prc" | "plc"

const timeLength = 9 // 36^9 ms reaches past the year 5000
const countLength = 3 // 46,656 ids in one millisecond before the clock is pushed on
const randomLength = 10 // 36^10 is below 2^53, so one draw fills it

let lastTime = 0
let count = 0

/**
 * A new id, such as `prt_0mk3v1f2a00b…`. Ids of one process ascend strictly in the order of the calls, also within
 * one millisecond and when the clock steps back; ids of several processes sort by time and never collide in practice
 * (ten random digits of base 36). They can be guessed: knowing one gives no right.
 */
export function newId(prefix: IdPrefix): string {
  const now = Date.now()
  if (now > lastTime) {
    lastTime = now
    count = 0
  } else if (++count >= 36 ** countLength) {
    lastTime += 1
    count = 0
  }
  return `${prefix}_${pad(lastTime, timeLength)}${pad(count, countLength)}${random()}`
}

function pad(value: number, length: number): string {
  return value.toString(36).padStart(length, "0")
}

/** Ids have to differ and need not be secrets, and what makes secrets takes longer to load than a whole command runs. */
function random(): string {
  return pad(Math.floor(Math.random() * 36 ** randomLength), randomLength)
}
