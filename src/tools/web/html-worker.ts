/** Worker thread that converts a page for `html-to-text.ts`. */
import { parentPort, workerData } from "node:worker_threads"
import { convertHtml } from "./html-convert.ts"

const { html, base, form } = workerData
parentPort?.postMessage(convertHtml(html, base, form))
