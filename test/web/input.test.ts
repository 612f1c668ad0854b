import { join } from "node:path"
import sharp from "sharp"
import { describe, expect, test } from "vitest"
import { violations } from "./accessibility.ts"
import { closeBrowserAfterwards, hasNoBrowser, openLoggedIn, startPageServer } from "./open-page.ts"

closeBrowserAfterwards()

function picture(width: number): Promise<Buffer> {
  const background = { r: 90, g: 120, b: 200 }
  return sharp({ create: { width, height: 20, channels: 3, background } })
    .png()
    .toBuffer()
}

/** Pastes or drops files on the message box, as a browser does. */
const giveFiles = `(({ type, files, text }) => {
  const data = new DataTransfer()
  for (const { name, base64 } of files)
    data.items.add(new File([Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0))], name, { type: "image/png" }))
  if (text) data.setData("text/plain", text)
  const target = document.getElementById("message-box")
  const options = { bubbles: true, cancelable: true }
  target.dispatchEvent(type === "paste"
    ? new ClipboardEvent("paste", { ...options, clipboardData: data })
    : new DragEvent(type, { ...options, dataTransfer: data }))
})`

describe.skipIf(hasNoBrowser)("the message box", () => {
  test("sends images and files that are pasted, dropped and chosen, except removed ones", async () => {
    const { server, model, project } = await startPageServer(() => ({ text: "Seen." }))
    await project.write("chosen.ts", "const chosen = 1\n")
    const { page, problems } = await openLoggedIn(server.url)
    const files = page.getByRole("list", { name: "Attached files" })
    const base64 = (await picture(30)).toString("base64")
    const give = (type: string, names: string[], text = "") =>
      page.evaluate(
        `${giveFiles}(${JSON.stringify({
          type,
          text,
          files: names.map((name) => ({ name, base64 })),
        })})`,
      )
    await page.getByRole("textbox", { name: "Message" }).fill("Look")
    await give("paste", ["pasted.png"])
    await files.getByText("pasted.png").waitFor()
    await give("paste", ["picture-of-text.png"], "copied text")
    await give("dragover", ["dropped.png"])
    await page.getByPlaceholder("Drop the files here").waitFor()
    await give("drop", ["dropped.png", "removed.png"])
    await files.getByText("removed.png").waitFor()
    await page.getByLabel("Attach files").setInputFiles(join(project.directory, "chosen.ts"))
    await files.getByText("chosen.ts").waitFor()
    expect(await violations(page)).toEqual([])
    await page.getByRole("button", { name: "Remove removed.png" }).click()
    expect(await files.getByRole("listitem").allInnerTexts()).toEqual([
      "pasted.png",
      "dropped.png",
      "chosen.ts",
    ])
    await page.locator("#message-box:focus").waitFor()
    await page.keyboard.press("Enter")
    await page.getByText("Seen.").waitFor()
    const message = page.getByRole("article", { name: "You" })
    expect(await message.getByRole("img").count()).toBe(2)
    await message.getByText("chosen.ts").waitFor()
    expect(await violations(page)).toEqual([])
    const sent = JSON.stringify(model.requests.at(-1)?.body.messages)
    expect(sent).toContain("const chosen = 1")
    expect(sent).toContain("pasted.png")
    expect(sent).not.toContain("removed.png")
    expect(sent).not.toContain("picture-of-text")
    // Only files, without a text.
    await give("paste", ["alone.png"])
    await page.getByRole("button", { name: "Send" }).click()
    await message.getByRole("img", { name: "alone.png" }).waitFor()
    expect(problems).toEqual([])
  })

  test("makes large images smaller and refuses files that the server cannot accept", async () => {
    const { server, get } = await startPageServer(() => ({ text: "Seen." }))
    const { page } = await openLoggedIn(server.url)
    const noise = Buffer.from(
      Uint8Array.from({ length: 3 * 2_400 * 800 }, (_, index) => (index * 7919) % 251),
    )
    const large = await sharp(noise, { raw: { width: 2_400, height: 800, channels: 3 } })
      .png({ compressionLevel: 0 })
      .toBuffer()
    const choose = (name: string, mimeType: string, buffer: Buffer) =>
      page.getByLabel("Attach files").setInputFiles({ name, mimeType, buffer })
    await choose("large.png", "image/png", large)
    await page.getByRole("list", { name: "Attached files" }).getByText("large.png").waitFor()
    await page.evaluate(`(() => {
      const data = new DataTransfer()
      data.items.add(new File([new Uint8Array(15_000_000)], "huge.bin"))
      document.dispatchEvent(new DragEvent("drop", { dataTransfer: data }))
    })()`)
    await page.getByText("“huge.bin” was not added.").waitFor()
    await page.getByRole("textbox", { name: "Message" }).fill("Look")
    await page.keyboard.press("Enter")
    await page.getByText("Seen.").waitFor()
    const id = new URL(page.url()).hash.slice(1)
    const { body } = await get(`/session/${id}/message`)
    const [file, ...others] = body.items[0].parts.filter(({ type }: { type: string }) => type === "file")
    expect(others).toEqual([])
    const shown = await sharp(Buffer.from(file.url.split(",")[1], "base64")).metadata()
    expect([file.mime, shown.width, shown.height]).toEqual(["image/jpeg", 2_000, 666])
  })

  test("completes commands and skills with the keyboard", async () => {
    const { server, model } = await startPageServer(() => ({ text: "Reviewed." }), {
      engine: {
        commands: {
          review: { template: "Review $ARGUMENTS now", description: "Review a change" },
          release: { template: "Release", description: "Write release notes" },
          test: { template: "Test" },
        },
      },
    })
    const { page } = await openLoggedIn(server.url)
    const { keyboard } = page
    await page.locator("#message-box").focus()
    await keyboard.type("/")
    const options = page.getByRole("listbox", { name: "Suggestions" }).getByRole("option")
    await expect.poll(() => options.count()).toBe(3)
    expect(await violations(page)).toEqual([])
    await keyboard.type("re")
    await expect.poll(() => options.count()).toBe(2)
    const selected = () => page.locator(".completions [aria-selected=true]").innerText()
    expect(await selected()).toContain("/release")
    await keyboard.press("ArrowDown")
    await expect.poll(selected).toContain("Review a change")
    const active = await page.locator("#message-box").getAttribute("aria-activedescendant")
    expect(await page.locator(`#${active}`).innerText()).toContain("/review")
    await keyboard.press("Escape")
    await expect.poll(() => options.count()).toBe(0)
    await page.locator("#message-box:focus").waitFor()
    await keyboard.type("v")
    await expect.poll(() => options.count()).toBe(1)
    await keyboard.press("Enter")
    await expect.poll(() => page.locator("#message-box").inputValue()).toBe("/review ")
    await keyboard.type("the cart")
    await keyboard.press("Enter")
    await page.getByText("Reviewed.").waitFor()
    expect(JSON.stringify(model.requests.at(-1)?.body.messages)).toContain("Review the cart now")
    // A command that is complete is sent by the first Enter.
    await keyboard.type("/test")
    await expect.poll(() => options.count()).toBe(1)
    await keyboard.press("Enter")
    await expect.poll(() => page.getByText("Reviewed.").count()).toBe(2)
  })

  test("completes files with the mouse in the middle of a text", async () => {
    const { server, model } = await startPageServer(() => ({ text: "Read." }), {
      files: { "src/cart.js": "let cart\n", "src/my cards.js": "let cards\n", "README.md": "# Shop\n" },
    })
    const { page } = await openLoggedIn(server.url)
    const box = page.locator("#message-box")
    await box.focus()
    await page.keyboard.type("Explain  please")
    for (let index = 0; index < " please".length; index += 1) await page.keyboard.press("ArrowLeft")
    await page.keyboard.type("@car")
    await page.getByRole("option", { name: "cart.js" }).click()
    expect(await box.inputValue()).toBe("Explain @src/cart.js please")
    await page.locator("#message-box:focus").waitFor()
    await page.keyboard.type(" and @cards")
    await page.getByRole("option", { name: "my cards.js" }).waitFor()
    await page.keyboard.press("Tab")
    await expect.poll(() => box.inputValue()).toBe('Explain @src/cart.js and @"src/my cards.js" please')
    await page.keyboard.press("Enter")
    await page.getByText("Read.").waitFor()
    const sent = JSON.stringify(model.requests.at(-1)?.body.messages)
    expect(sent).toContain("let cart")
    expect(sent).toContain("let cards")
    expect(sent).not.toContain("# Shop")
  })
})
