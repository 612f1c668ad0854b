/** One prefix per kind of object. */
export type IdPrefix =
  | "ses"
  | "msg"
  | "prt"
  | "inp"
  | "per"
  | "que"
  | "rem"
  | "ans"
  | "gra"
  | "job"
  | "call"
  | "eng"
  | "prc"
  | "plc"

const timeLength = 9 // 36^9 ms reach past the year 5000.
const countLength = 3 // Allows 46,656 ids per millisecond before the clock is advanced.
const randomLength = 10 // 36^10 is below 2^53, so one random number is enough.

let lastTime = 0
let count = 0

/**
 * Makes all later ids of this process with the same prefix sort after the given id. Call it before you create ids that
 * must sort after the ids of another process, because that process's clock may have been ahead. Ignores a string that
 * {@link newId} did not create.
 */
export function continueIdsAfter(id: string): void {
  const [, time, counted] = idPattern.exec(id) ?? []
  if (time === undefined || counted === undefined) return
  const [itsTime, itsCount] = [Number.parseInt(time, 36), Number.parseInt(counted, 36)]
  // Ids with later times need more digits, so they would not sort by time.
  if (itsTime >= 36 ** timeLength - 1) return
  if (itsTime > lastTime) [lastTime, count] = [itsTime, itsCount]
  else if (itsTime === lastTime) count = Math.max(count, itsCount)
}

const idPattern = new RegExp(
  `^[a-z]+_([0-9a-z]{${timeLength}})([0-9a-z]{${countLength}})[0-9a-z]{${randomLength}}$`,
)

/**
 * Returns a new id, such as `prt_0mk3v1f2a00b…`. Ids with the same prefix from one process are strictly ascending, even
 * within a millisecond and when the clock steps back. The ids of different processes sort by time and practically never
 * collide (ten random base-36 digits). Ids are guessable and grant no access.
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

/**
 * Uses `Math.random`, because ids need not be secret and loading the crypto module takes longer than running a whole
 * command.
 */
function random(): string {
  return pad(Math.floor(Math.random() * 36 ** randomLength), randomLength)
}
