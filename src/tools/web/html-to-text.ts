import { extname } from "node:path"
import { Worker } from "node:worker_threads"
import { orAbort } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import type { HtmlForm } from "./html-convert.ts"
import { WebfetchError } from "./webfetch-error.ts"

/** A page of 5 MB takes 5 s; a hostile one would take hours. In milliseconds. */
const defaultTimeLimitMs = 20_000

/** In megabytes. A page of 5 MB needs about 200. */
const memoryLimitMb = 1024

/**
 * A page as Markdown or text, converted in a thread that is ended when it takes too long or too much: pages are other
 * people's, and the engine goes on meanwhile. Throws {@link WebfetchError} for a page that cannot be converted, and the
 * signal's reason.
 */
export async function htmlToText(
  html: string,
  options: { base: string; form: HtmlForm; signal: AbortSignal; timeLimitMs?: number },
): Promise<string> {
  const { base, form, signal, timeLimitMs = defaultTimeLimitMs } = options
  const worker = new Worker(new URL(`./html-worker${extname(import.meta.filename)}`, import.meta.url), {
    workerData: { html, base, form },
    // Not those of the program that we are a part of, some of which no thread takes.
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
