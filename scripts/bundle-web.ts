import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { rolldown } from "rolldown"

/**
 * Bundles the web page: `index.html`, and its scripts, style sheet and icon, each with a hash of its content in its
 * name.
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
  // Each file can contain the names of the files before it.
  const files = [
    { name: "event-worker.js", content: await script(join(source, "event-worker.ts")) },
    { name: "app.js", content: await script(join(source, "main.tsx")) },
    { name: "app.css", content: styles(join(source, "styles")) },
    { name: "icon.svg", content: readFileSync(join(source, "icon.svg"), "utf8") },
    { name: "index.html", content: readFileSync(join(source, "index.html"), "utf8") },
  ]
  mkdirSync(directory, { recursive: true })
  const names = new Map<string, string>()
  for (const { name, content } of files) {
    const text = [...names].reduce(
      (all, [from, to]) => all.replaceAll(`/assets/${from}`, `/assets/${to}`),
      content,
    )
    const hash = createHash("sha256").update(text).digest("hex").slice(0, 10)
    const hashed = name === "index.html" ? name : name.replace(".", `-${hash}.`)
    names.set(name, hashed)
    writeFileSync(join(directory, hashed), text)
  }
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
