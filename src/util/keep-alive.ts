/**
 * Keeps the process alive until `work` settles. Used for work that Node does not wait for, such as a request that waits
 * for a reply. Settles like `work`.
 */
export async function keepAlive<T>(work: Promise<T>): Promise<T> {
  const alive = setInterval(() => {}, longestIntervalMs)
  try {
    return await work
  } finally {
    clearInterval(alive)
  }
}

/** Maximum delay of a timer in ms. Node fires longer timers immediately. */
const longestIntervalMs = 2 ** 31 - 1
