import { expect, test } from "vitest"
import {
  closeBrowserAfterwards,
  hasNoBrowser,
  openLoggedIn,
  startPageServer,
  startSession,
} from "./open-page.ts"

closeBrowserAfterwards()

const source = `## Title *with* \`code\`

One **two** ~~three~~ &lt;b&gt; &copy; \\*four\\*
five [link](https://example.com/?a=1&amp;b=2 "title") <https://example.org> a@example.com

> quote

3. three
4. four
   - nested

- [x] done
- [ ] open

| a | b |
|---|--:|
| 1 | \`2\` |

---

\`\`\`ts run
const a = "<b>" && 1
\`\`\`
`

const link = 'target="_blank" rel="noopener noreferrer"'

test.skipIf(hasNoBrowser)("shows Markdown as elements", async () => {
  const { server } = await startPageServer([{ text: source }])
  const { page } = await openLoggedIn(server.url)
  await startSession(page, "Show all")
  await page.getByText("const a =").waitFor()
  const blocks = await page.evaluate<string[]>(
    "[...document.querySelectorAll('.answer .markdown > div')].map((each) => each.innerHTML)",
  )
  expect(blocks).toEqual([
    "<h2>Title <em>with</em> <code>code</code></h2>",
    `<p>One <strong>two</strong> <del>three</del> &lt;b&gt; © *four*<br>five <a href="https://example.com/?a=1&amp;b=2" ${link}>link</a> <a href="https://example.org" ${link}>https://example.org</a> <a href="mailto:a@example.com" ${link}>a@example.com</a></p>`,
    "<blockquote><p>quote</p></blockquote>",
    '<ol start="3"><li>three</li><li>four<ul><li>nested</li></ul></li></ol>',
    '<ul><li><input type="checkbox" disabled="" aria-label="done">done</li><li><input type="checkbox" disabled="" aria-label="not done">open</li></ul>',
    '<table><thead><tr><th>a</th><th align="right">b</th></tr></thead><tbody><tr><td>1</td><td align="right"><code>2</code></td></tr></tbody></table>',
    "<hr>",
    '<div class="code"><div class="code-head"><span>ts</span><button type="button" class="quiet">Copy</button></div><pre tabindex="0"><code>const a = "&lt;b&gt;" &amp;&amp; 1</code></pre></div>',
  ])
  expect(await page.getByRole("checkbox", { name: "done", exact: true }).isChecked()).toBe(true)
})

test.skipIf(hasNoBrowser)("shows deeply nested Markdown as its source", async () => {
  const { server } = await startPageServer([
    { text: `${"> ".repeat(300)}deep\n\nThe end.` },
    { text: `${"> ".repeat(20_000)}deepest` },
  ])
  const { page, problems } = await openLoggedIn(server.url)
  await startSession(page, "Nest")
  await page.getByText("The end.").waitFor()
  await page.getByRole("textbox", { name: "Message" }).fill("Nest again")
  await page.keyboard.press("Enter")
  await page.getByText("> deepest").waitFor()
  expect(problems).toEqual([])
})
