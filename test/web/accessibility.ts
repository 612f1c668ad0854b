import axe from "axe-core"
import type { Page } from "playwright-core"

/** Returns the accessibility problems that axe finds in the page, with the elements. */
export async function violations(page: Page): Promise<string[]> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe.source)
  return page.evaluate(`axe.run(document).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html.slice(0, 200))))`)
}
