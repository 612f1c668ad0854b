import { Worker } from "node:worker_threads"
import { orAbort } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { packagedFile } from "../../util/packaged-file.ts"
import { WebfetchError } from "./webfetch-error.ts"

/** Output format. `text` has no markup for emphasis, headings and links. */
export type HtmlForm = "markdown" | "text"

/** Time limit in milliseconds. A 5 MB page takes 5 s, but a hostile page would take hours. */
const defaultTimeLimitMs = 20_000

/** Memory limit in megabytes. A 5 MB page needs about 200 MB. */
const memoryLimitMb = 1024

/**
 * Converts a page to Markdown or text in a worker thread with time and memory limits, because pages are untrusted and
 * the engine must not block. Throws {@link WebfetchError} if the page cannot be converted, and the error that
 * `abortedError` returns if the signal aborts.
 */
export async function htmlToText(
  html: string,
  options: { base: string; form: HtmlForm; signal: AbortSignal; timeLimitMs?: number },
): Promise<string> {
  const { base, form, signal, timeLimitMs = defaultTimeLimitMs } = options
  const worker = new Worker(packagedFile("html-worker.cjs", "../tools/web/html-worker.ts"), {
    workerData: { html, base, form },
    // Does not inherit the options of this process, because threads reject some of them.
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: memoryLimitMb },
  })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const fail = (why: string, cause?: unknown) =>
    reject(
      new WebfetchError(
        "content",
        `Cannot convert the page to ${form}: ${why}. Fetch it with format "html".`,
        cause,
      ),
    )
  const timer = setTimeout(() => fail(`it takes more than ${timeLimitMs / 1000} s`), timeLimitMs)
  worker.once("message", resolve)
  worker.once("error", (error) =>
    fail(error instanceof RangeError ? "it is nested too deeply" : errorMessage(error), error),
  )
  worker.once("exit", () => fail("the conversion ended without a result"))
  try {
    return await orAbort(promise, signal)
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
}
