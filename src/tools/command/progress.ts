/** Ten reports a second: as many as anyone can read. */
const intervalMs = 100

/** Joins many small steps into few reports. */
export interface Progress {
  /** Something happened: it is reported soon. Costs nothing when called again before that. */
  touch(): void
  /** The last report, at once. Nothing is reported after it. Rejects with the first failure of any report. */
  finish(): Promise<void>
}

/** Calls of `report` never overlap. Once one has failed no further is made. */
export function createProgress(report: () => Promise<void>): Progress {
  let timer: NodeJS.Timeout | undefined
  let finished = false
  let reports = Promise.resolve()

  function fire(): void {
    timer = undefined
    reports = reports.then(report)
    // `finish` looks at it; until then a failure is nobody's unhandled rejection.
    reports.catch(() => {})
  }

  return {
    touch() {
      if (!finished) timer ??= setTimeout(fire, intervalMs)
    },
    async finish() {
      finished = true
      clearTimeout(timer)
      await reports
      await report()
    },
  }
}
