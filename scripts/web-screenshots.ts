/**
 * Takes the pictures of the web page for `docs/`: `node scripts/web-screenshots.ts`. Needs Chromium and a built
 * command. The page shows a copy of `examples/shop` with the built-in model, so it needs no API key.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"
import { type Browser, chromium, type Page } from "playwright-core"
import sharp from "sharp"

/** A picture: its file in `docs/`, and the window. */
interface Picture {
  file: string
  width: number
  height: number
  theme: "light" | "dark"
}

const pictures: Picture[] = [
  { file: "web.webp", width: 1280, height: 800, theme: "light" },
  { file: "web-phone.webp", width: 390, height: 760, theme: "dark" },
]

/** Maximum size of a picture in bytes. */
const maxBytes = 150_000

const root = resolve(import.meta.dirname, "..")
const prompt =
  "Look at src/cart.js, replace (1 + discount) with (1 - discount) in src/cart.js, then run npm test"
const earlier = ["List the files", "Find TODO in src"]

// The page shows the path.
const home = join(tmpdir(), "tackle-pictures")
mkdirSync(home)
const project = join(home, "shop")
cpSync(join(root, "examples/shop"), project, { recursive: true })
const server = startServer()
try {
  const link = await linkOf(server)
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  })
  await takePictures(browser, link)
  await browser.close()
} finally {
  server.kill("SIGTERM")
  await once(server, "exit")
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}

function startServer(): ChildProcess {
  const args = ["web", "--no-open", "--port", "0", "--dir", project]
  const environment = {
    HOME: home,
    TACKLE_DATA_DIR: join(home, "data"),
    PATH: `${join(root, "node_modules/.bin")}:/usr/bin:/bin`,
  }
  return spawn(join(root, "bin/tackle"), args, { env: environment, stdio: ["ignore", "pipe", "inherit"] })
}

async function linkOf({ stdout }: ChildProcess): Promise<string> {
  if (!stdout) throw new Error("The server has no output.")
  for await (const line of createInterface({ input: stdout })) {
    const [link] = /http\S+#ticket=\S+/.exec(line) ?? []
    if (link !== undefined) return link
  }
  throw new Error("The server ended before it printed its link.")
}

async function takePictures(browser: Browser, link: string): Promise<void> {
  const context = await browser.newContext({ deviceScaleFactor: 1.5 })
  const page = await context.newPage()
  await page.goto(link)
  for (const text of earlier) {
    await start(page, text)
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" })
    await page.goto(new URL("/", link).href)
  }
  await start(page, prompt)
  await page.getByRole("button", { name: /Allow once/ }).click()
  await page.getByRole("region", { name: "Permission: bash" }).waitFor()
  await page.getByRole("button", { name: /^done edit/ }).waitFor()
  const address = page.url()
  for (const { file, width, height, theme } of pictures) {
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme: theme })
    await page.goto("about:blank")
    await page.goto(address)
    await page.getByRole("region", { name: "Permission: bash" }).waitFor()
    // By default, the page shows the beginning of the request. The picture shows the end and what happened before.
    await page.evaluate("document.querySelector('.scroller').scrollTop = 1e6")
    await page.evaluate("document.fonts.ready.then(() => new Promise((resolve) => setTimeout(resolve, 500)))")
    const picture = await sharp(await page.screenshot())
      .webp({ quality: 84, effort: 6 })
      .toBuffer()
    if (picture.length > maxBytes)
      throw new Error(`${file} has ${picture.length} bytes, more than ${maxBytes}.`)
    writeFileSync(join(root, "docs", file), picture)
  }
}

async function start(page: Page, text: string): Promise<void> {
  const box = page.getByRole("textbox", { name: "Message" })
  await box.fill(text)
  await box.press("Enter")
  await page.getByRole("region", { name: "Conversation" }).waitFor()
}
