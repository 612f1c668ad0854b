import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { rolldown } from "rolldown"

/**
 * Bundles the web page: `index.html`, and one script, one style sheet and the icon, each with a hash of its content in
 * its name.
 */
export async function bundleWeb({
  source,
  directory,
}: {
  /** Directory of the page's sources. */
  source: string
  /** Directory to write the page to. */
  directory: string
}): Promise<void> {
  const files = [
    { name: "app", extension: "js", content: await script(join(source, "main.tsx")) },
    { name: "app", extension: "css", content: styles(join(source, "styles")) },
    { name: "icon", extension: "svg", content: readFileSync(join(source, "icon.svg"), "utf8") },
  ]
  mkdirSync(directory, { recursive: true })
  let html = readFileSync(join(source, "index.html"), "utf8")
  for (const { name, extension, content } of files) {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 10)
    writeFileSync(join(directory, `${name}-${hash}.${extension}`), content)
    html = html.replace(`${name}.${extension}`, `${name}-${hash}.${extension}`)
  }
  writeFileSync(join(directory, "index.html"), html)
}

async function script(input: string): Promise<string> {
  const bundle = await rolldown({
    input,
    platform: "browser",
    transform: { target: "es2024" },
  })
  const { output } = await bundle.generate({
    format: "es",
    minify: true,
    codeSplitting: false,
    comments: { legal: false, annotation: false },
  })
  await bundle.close()
  return output[0].code
}

/** Joins the style sheets in the order of their names. */
function styles(directory: string): string {
  return readdirSync(directory)
    .sort()
    .map((name) => readFileSync(join(directory, name), "utf8"))
    .join("\n")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/^\s+|\s*\n/gm, "\n")
    .replace(/\n+/g, "\n")
}
