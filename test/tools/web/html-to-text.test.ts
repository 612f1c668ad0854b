import { describe, expect, test } from "vitest"
import { convertHtml } from "../../../src/tools/web/html-convert.ts"
import { type HtmlForm, htmlToText } from "../../../src/tools/web/html-to-text.ts"

const base = "https://example.com/docs/page"
const markdown = (html: string) => convertHtml(html, base, "markdown")
const { signal } = new AbortController()

const page = `<!doctype html><html><head><title>The page</title><style>p{}</style><script>run()</script></head><body>
<h1>Head</h1><p>Some <b>bold</b> and <i>soft</i> <code>a_b</code>.</p><ul><li>one</li><li>two</li></ul>
<pre><code class="language-js">if (a &lt; b) {\n  run()\n}</code></pre><noscript>no</noscript><svg><text>drawn</text></svg>
<iframe src="/x">frame</iframe></body></html>`

test("converts a page to Markdown", () => {
  expect(markdown(page)).toBe(
    "The page\n\n# Head\n\nSome **bold** and *soft* `a_b`.\n\n-   one\n-   two\n\n```js\nif (a < b) {\n  run()\n}\n```",
  )
})

test("converts a page to text", () => {
  expect(convertHtml(page, base, "text")).toBe(
    "The page\n\nHead\n\nSome bold and soft a_b.\n\n-   one\n-   two\n\nif (a < b) {\n  run()\n}",
  )
})

describe("links and images", () => {
  test.each([
    ['<a href="../x?a=(1)">x</a>', "[x](https://example.com/x?a=%281%29)"],
    ['<a href="#top">top</a>', "top"],
    ['<a href="javascript:run()">run</a>', "run"],
    ['<a href="/empty"></a>after', "after"],
    ['<img src="a.png" alt="A">', "![A](https://example.com/docs/a.png)"],
    ['<img src="data:image/png;base64,AAAA" alt="inside">', "inside"],
  ])("%s", (html, expected) => expect(markdown(html)).toBe(expected))
})

test("converts data tables but not layout tables", () => {
  const rows =
    "<tr><th>a</th><th>b|c</th></tr><tr><td><b>1</b></td><td>two<br>lines</td></tr><tr><td>x</td></tr>"
  expect(markdown(`<table>${rows}</table>`)).toBe(
    "| a | b\\|c |\n| --- | --- |\n| **1** | two lines |\n| x |  |",
  )
  expect(markdown("<table><tr><td>left</td></tr><tr><td>right</td></tr></table>")).toBe("left\n\nright")
})

describe("in a worker thread", () => {
  test.each<[HtmlForm, string]>([
    ["markdown", "**x**"],
    ["text", "x"],
  ])("%s", async (form, expected) => {
    expect(await htmlToText("<b>x</b>", { base, form, signal })).toBe(expected)
  })

  test("reports a page that takes too long", async () => {
    const html = "<p><b>x</p>".repeat(30_000)
    await expect(
      htmlToText(html, { base, form: "markdown", signal, timeLimitMs: 100 }),
    ).rejects.toMatchObject({
      code: "webfetch.content",
      message: expect.stringContaining('format "html"'),
    })
  })

  test("stops a long conversion at an abort", async () => {
    const aborting = new AbortController()
    const work = htmlToText("<p><b>x</p>".repeat(30_000), { base, form: "markdown", signal: aborting.signal })
    setImmediate(() => aborting.abort())
    await expect(work).rejects.toMatchObject({ code: "aborted" })
  })
})
