import { resolve } from "node:path"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { afterAll, onTestFinished } from "vitest"
import { browserProgram } from "../browser.ts"
import { setUp, tokens } from "../server/start-server.ts"

/** The built page. */
export const builtPage = resolve(import.meta.dirname, "../../dist/web")

/** True if the tests of the page cannot run. */
export const hasNoBrowser = browserProgram === undefined

let browser: Promise<Browser> | undefined

/** Returns the browser of this test file. */
function openBrowser(): Promise<Browser> {
  browser ??= chromium.launch({
    executablePath: browserProgram,
    // The user of a container is often root. The sandbox of Chromium then does not start.
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  })
  return browser
}

/** Closes the browser after the tests of a file. Call this at the top of the file. */
export function closeBrowserAfterwards(): void {
  afterAll(async () => {
    await (await browser)?.close()
    browser = undefined
  })
}

type SetUp = typeof setUp

/** Starts a server that serves the built page, with a scripted model. */
export function startPageServer(...[script, options]: Parameters<SetUp>) {
  return setUp(script, { pageDirectory: builtPage, ...options })
}

/** Opens a window with its own cookies. It records the errors of the page, and requests to other servers. */
export async function openWindow(options: BrowserContextOptions = {}) {
  const context = await (await openBrowser()).newContext({
    viewport: { width: 1280, height: 800 },
    ...options,
  })
  onTestFinished(() => context.close())
  // Ends before the time of the test, so that the error names the element.
  context.setDefaultTimeout(10_000)
  const problems: string[] = []
  const foreign: string[] = []
  context.on("weberror", (error) => problems.push(String(error.error())))
  context.on("request", (request) => {
    if (!/^(http:\/\/127\.0\.0\.1:|data:)/.test(request.url())) foreign.push(request.url())
  })
  return { context, page: await context.newPage(), problems, foreign }
}

/** Creates the address that logs a window in once. */
export async function loginAddress(url: string): Promise<string> {
  const headers = { authorization: `Bearer ${tokens.admin}` }
  const response = await fetch(`${url}/ticket`, { method: "POST", headers })
  const { ticket } = (await response.json()) as { ticket: string }
  return `${url}/#ticket=${ticket}`
}

/** Opens a logged-in window. */
export async function openLoggedIn(url: string, options: BrowserContextOptions = {}) {
  const opened = await openWindow(options)
  await opened.page.goto(await loginAddress(url))
  await opened.page.locator(".app").waitFor()
  return opened
}

/** Starts a session with a prompt on the start page. */
export async function startSession(page: Page, prompt: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(prompt)
  await page.keyboard.press("Enter")
  await page.getByRole("region", { name: "Conversation" }).waitFor()
}
