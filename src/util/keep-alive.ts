/**
 * Keeps the process alive until `work` settles, even if nothing else does, such as while a request waits for a reply.
 * Settles like `work`.
 */
export async function keepAlive<T>(work: Promise<T>): Promise<T> {
  const alive = setInterval(() => {}, longestIntervalMs)
  try {
    return await work
  } finally {
    clearInterval(alive)
  }
}

/** Node fires longer timers at once. */
const longestIntervalMs = 2 ** 31 - 1
