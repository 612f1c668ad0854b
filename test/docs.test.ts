import { execFile } from "node:child_process"
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { promisify } from "node:util"
import { describe, expect, onTestFinished, test } from "vitest"
import * as z from "zod"
import { loadConfig } from "../src/config/load.ts"
import type { EventType } from "../src/event/events.ts"
import { Input } from "../src/schema/input.ts"
import { Message } from "../src/schema/message.ts"
import { Part } from "../src/schema/part.ts"
import { PermissionRequest } from "../src/schema/permission.ts"
import { QuestionAnswers, QuestionRequest } from "../src/schema/question.ts"
import { Session } from "../src/schema/session.ts"
import { Todo } from "../src/schema/todo.ts"
import { temporaryProject } from "../src/testing/project.ts"

const root = resolve(import.meta.dirname, "..")
const pages = globSync("{*.md,docs/**/*.md,examples/**/*.md}", { cwd: root }).sort()
const read = (page: string) => readFileSync(join(root, page), "utf8")

describe("links", () => {
  test.each(pages)("of %s resolve", (page) => {
    const broken = linksOf(page).filter((link) => !resolves(page, link))
    expect(broken).toEqual([])
  })
})

describe("config blocks", () => {
  const blocks = pages.flatMap((page) => blocksOf(page, /^(json|jsonc|toml) config$/))
  test("exist", () => expect(blocks.length).toBeGreaterThan(5))
  test.each(blocks)("$place is a valid config", async ({ info, text }) => {
    const file = `tackle.${info.split(" ")[0]}`
    const home = await temporaryProject({ [file]: text })
    for (const [, path] of text.matchAll(/\{file:~\/([^}]+)\}/g)) await home.write(path ?? "", "a key\n")
    const location = { directory: home.directory, worktree: home.directory, home: home.directory }
    const environment = { TACKLE_CONFIG: home.path(file), MODEL_HOST: "h", GATEWAY_KEY: "k", TEAM: "t" }
    const loaded = await loadConfig({ ...location, environment, trusted: true })
    expect(loaded.warnings).toEqual([])
    await home.remove()
  })
})

describe("events", () => {
  const blocks = pages.flatMap((page) => blocksOf(page, /^json event$/))
  test.each(blocks)("$place matches a real event", ({ text }) => {
    const event: unknown = JSON.parse(text)
    const { type } = z.object({ type: z.enum(Object.keys(payloads) as EventType[]) }).parse(event)
    z.strictObject({
      type: z.string(),
      time: z.number(),
      sessionID: z.string(),
      seq: z.number().optional(),
      ...payloads[type],
    }).parse(event)
  })

  test("document every event type", () => {
    const untold = Object.keys(payloads).filter(
      (type) => !read("docs/command-line.md").includes(`**\`${type}\`**`),
    )
    expect(untold).toEqual([])
  })
})

describe("programs", () => {
  test("in the pages compile", async () => {
    // Below the repository, where package names and Tackle itself resolve.
    const project = join(root, "node_modules/.cache/tackle-docs")
    const modules = pages
      .flatMap((page) => blocksOf(page, /^ts$/))
      .map(({ text, place }) => {
        const name = /^\/\/ \S*\/(\S+)\.ts$/m.exec(text)?.[1] ?? place.replaceAll(/\W/g, "-")
        return { name, text: `// ${place}\n${text}\nexport {}\n` }
      })
    expect(modules.length).toBeGreaterThan(10)
    onTestFinished(() => rmSync(project, { recursive: true, force: true }))
    mkdirSync(project, { recursive: true })
    for (const { name, text } of modules) writeFileSync(join(project, `${name}.ts`), text)
    const files = modules.map(({ name }) => `${name}.ts`)
    // The declarations of the built library, as an application sees them. Reading the sources takes longer.
    const paths = {
      tackle: ["dist/lib/index.d.ts"],
      "tackle/store/*": ["dist/lib/store/*.d.ts"],
      "tackle/*": ["dist/lib/*/index.d.ts"],
    }
    const absolute = Object.entries(paths).map(([name, [path]]) => [name, [join(root, path ?? "")]])
    const compilerOptions = { noUnusedLocals: false, paths: Object.fromEntries(absolute) }
    const config = {
      extends: relative(project, join(root, "tsconfig.json")),
      compilerOptions,
      files,
      include: [],
    }
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify(config))
    const tsc = join(root, "node_modules/typescript/bin/tsc")
    const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", project]).catch(
      (error: { stdout: string }) => error,
    )
    expect(stdout).toBe("")
  })
})

interface Block {
  info: string
  text: string
  place: string
}

/** Returns the fenced blocks whose info string matches. */
function blocksOf(page: string, wanted: RegExp): Block[] {
  const text = read(page)
  return [...text.matchAll(/^```([^\n`]+)\n(.*?)^```$/gms)].flatMap(
    ({ 1: info = "", 2: body = "", index }) =>
      wanted.test(info)
        ? [{ info, text: body, place: `${page}:${text.slice(0, index).split("\n").length}` }]
        : [],
  )
}

/** Returns the targets of links and images, except in code. */
function linksOf(page: string): string[] {
  const prose = read(page)
    .replaceAll(/^```.*?^```$/gms, "")
    .replaceAll(/`[^`\n]*`/g, "code")
  return [...prose.matchAll(/\]\(([^()\s]+)\)/g)].flatMap(({ 1: link }) => link ?? [])
}

function resolves(page: string, link: string): boolean {
  if (/^https?:/.test(link)) return true
  const [path = "", anchor] = link.split("#")
  const target = path === "" ? page : relative(root, resolve(root, dirname(page), path))
  if (!existsSync(join(root, target))) return false
  if (anchor === undefined) return true
  return statSync(join(root, target)).isFile() && anchorsOf(target).includes(anchor)
}

/** Returns anchors as Markdown hosts create them: lower case, without punctuation, hyphens for spaces. */
function anchorsOf(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(({ 1: title = "" }) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  )
}

/** The fields of each event type besides type, time and session. */
const payloads: Record<EventType, z.ZodRawShape> = {
  "session.created": { session: Session },
  "session.updated": { session: Session },
  "session.deleted": { session: Session },
  "session.error": {
    error: z.strictObject({ name: z.string(), message: z.string(), status: z.number().optional() }),
  },
  "message.created": { message: Message },
  "message.updated": { message: Message },
  "part.updated": { part: Part },
  "part.removed": { messageID: z.string(), partID: z.string() },
  "part.delta": { partID: z.string(), field: z.enum(["text", "raw"]), delta: z.string() },
  "permission.asked": { request: PermissionRequest },
  "permission.replied": {
    requestID: z.string(),
    reply: z.enum(["once", "always", "reject"]),
    source: z.string(),
    message: z.string().optional(),
  },
  "question.asked": { request: QuestionRequest },
  "question.replied": { requestID: z.string(), answers: QuestionAnswers },
  "question.rejected": { requestID: z.string() },
  "input.updated": { input: Input },
  "todo.updated": { todos: z.array(Todo) },
  "context.filling": { used: z.number(), room: z.number() },
  "run.completed": {
    status: z.enum(["completed", "failed", "limit", "interrupted"]),
    exitCode: z.number(),
    text: z.string(),
    messageIDs: z.array(z.string()),
    usage: z.record(z.string(), z.number()),
    refused: z.array(z.record(z.string(), z.unknown())),
    durationMs: z.number(),
  },
}
