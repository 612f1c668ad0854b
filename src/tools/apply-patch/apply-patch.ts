import * as z from "zod"
import { commitFiles } from "../../files/commit-files.ts"
import { FileAccessError } from "../../files/file-errors.ts"
import type { FileStamp } from "../../files/file-tracker.ts"
import { type Formatting, formatFile, formatReport, recordChange } from "../../files/format-file.ts"
import {
  assertUnchanged,
  bytesOf,
  FileChangeError,
  readBefore,
  resolveTarget,
} from "../../files/freshness.ts"
import { showName } from "../../files/show-name.ts"
import { isWholeDiff } from "../../files/unified-diff.ts"
import type { ChangedPath } from "../../lsp/service.ts"
import type { ToolContext } from "../../tool/context.ts"
import { define } from "../../tool/tool.ts"
import { throwIfAborted, withTimeLimit } from "../../util/abort.ts"
import { errorMessage, TackleError } from "../../util/errors.ts"
import { isDirectory, readText } from "../../util/file-system.ts"
import { displayPath, resolvePath } from "../../util/paths.ts"
import { errorsAfterEdit } from "../lsp/findings.ts"
import { type PatchSection, parsePatch } from "./patch-parse.ts"
import { type OpenSection, type PatchFile, type PlannedSection, planSection } from "./plan-patch.ts"

const parameters = z.lazy(() =>
  z.object({
    patchText: z.string().min(1).describe("The whole patch, from *** Begin Patch to *** End Patch"),
  }),
)

/** Applies a patch to several files. If any part of the patch fails, no file is changed. */
export const applyPatchTool = define("apply_patch", {
  description: readText(new URL("./apply-patch.md", import.meta.url)),
  parameters,
  access: "write",
  asksFirst: true,
  // The scheduler does not know which files the patch changes.
  serial: true,
  async execute({ patchText }, ctx) {
    const named = parsePatch(patchText).map((section) => nameSection(section, ctx))
    const paths = named.flatMap(({ path, target }) => [path, ...(target === undefined ? [] : [target])])
    const reals = new Map(paths.map((path) => [path, resolveTarget(path)]))
    assertDistinct(paths, reals)
    const { planned, ...result } = await ctx.files.lock([...reals.values()], async () => {
      throwIfAborted(ctx.abort)
      const planned: PlannedSection[] = []
      for (const names of named)
        planned.push(await planSection(await openSection(names, reals, ctx), ctx.files))
      const diff = planned.map((section) => section.diff).join("")
      const about = { filePath: paths.join(", "), diff }
      // Offers "always" only if the request shows the user the whole change.
      const always = isWholeDiff(diff) ? ["*"] : []
      await ctx.ask({ permission: "edit", patterns: paths, always, metadata: about })
      throwIfAborted(ctx.abort)
      const { stamps, formattings } = await ctx.files.commit([...reals.values()], async () => {
        for (const { file, target } of planned) {
          await assertUnchanged(file.before)
          if (target) await assertUnchanged(target.before)
        }
        const stamps = await recordChange(ctx, contents(planned), () => commit(planned, ctx.files))
        return { stamps, formattings: await formatPatch(planned, stamps, ctx) }
      })
      for (const { path, stamp } of knownFiles(planned, stamps)) ctx.files.record(path, stamp)
      return {
        title: planned.length === 1 ? changeLine(planned[0]) : `${planned.length} files`,
        output: `Applied the patch:\n${planned.map(report).join("\n")}${formattings.reports}`,
        metadata: {
          diff,
          changes: planned.map(describe),
          ...formattings.metadata,
          files: knownFiles(planned, stamps),
        },
        planned,
      }
    })
    const errors = await errorsAfterEdit(ctx, planned.flatMap(changedPaths))
    return { ...result, output: result.output + errors }
  },
})

interface NamedSection {
  section: PatchSection
  /** Absolute path, with links unresolved. */
  path: string
  target?: string
}

function nameSection(section: PatchSection, { directory }: ToolContext): NamedSection {
  const path = resolvePath(section.path, directory)
  return section.kind === "update" && section.moveTo !== undefined
    ? { section, path, target: resolvePath(section.moveTo, directory) }
    : { section, path }
}

/**
 * Throws `FileChangeError` if the patch has several sections for one file, because a patch does not define the order of
 * its sections.
 */
function assertDistinct(paths: readonly string[], reals: ReadonlyMap<string, string>): void {
  const known = new Set<string | undefined>()
  for (const path of paths) {
    const real = reals.get(path)
    if (known.has(real)) {
      throw new FileChangeError(
        "unfit",
        `The patch has more than one section for ${showName(path)}. Nothing was changed. Use one section per file, or send two patches.`,
      )
    }
    known.add(real)
  }
}

async function openSection(
  { section, path, target }: NamedSection,
  reals: ReadonlyMap<string, string>,
  ctx: ToolContext,
): Promise<OpenSection> {
  const open = async (name: string): Promise<PatchFile> => ({
    before: await readBefore(name, reals.get(name) ?? name),
    title: showName(displayPath(name, ctx.worktree)),
  })
  const file = await open(path)
  return target === undefined ? { section, file } : { section, file, target: await open(target) }
}

async function commit(
  planned: readonly PlannedSection[],
  { trackTemporary }: ToolContext["files"],
): Promise<Map<string, FileStamp>> {
  const befores = planned.flatMap(({ file, target }) => [file.before, ...(target ? [target.before] : [])])
  const steps = planned.flatMap(({ steps }) => steps)
  try {
    return await commitFiles(
      steps.map((step) => {
        const before = befores.find(({ real }) => real === step.path)
        return {
          ...step,
          async check() {
            // The path may be a directory. That error is reported when the change is made.
            if (before && (before.exists || !isDirectory(step.path))) await assertUnchanged(before)
          },
        }
      }),
      trackTemporary,
    )
  } catch (error) {
    if (TackleError.isInstance(error)) throw error
    throw new FileAccessError(
      `The patch could not be applied: ${errorMessage(error)}. No file was changed.`,
      error,
    )
  }
}

/** Returns the contents of all files in the patch, before and after the change. */
function contents(planned: readonly PlannedSection[]) {
  const opened = planned.flatMap(({ file, target }) => (target ? [file, target] : [file]))
  return {
    before: opened.map(({ before }) => ({ path: before.real, bytes: bytesOf(before) })),
    after: planned.flatMap(({ steps }) => steps),
  }
}

/** Returns the files whose whole content the session now knows, for the session's file tracker. */
function knownFiles(
  planned: readonly PlannedSection[],
  stamps: ReadonlyMap<string, FileStamp>,
): { path: string; stamp: FileStamp }[] {
  return planned.flatMap(({ known, file, target }) => {
    const path = (target ?? file).before.real
    const stamp = known ? stamps.get(path) : undefined
    return stamp ? [{ path, stamp }] : []
  })
}

function describe({ section, file, target }: PlannedSection) {
  const type = target ? "move" : section.kind
  const change = { type, filePath: file.before.path, relativePath: file.title }
  return target ? { ...change, movePath: target.before.path } : change
}

function changedPaths({ section, file, target }: PlannedSection): ChangedPath[] {
  const { real: path } = file.before
  if (target)
    return [
      { path, kind: "deleted" },
      { path: target.before.real, kind: target.before.exists ? "changed" : "created" },
    ]
  return [{ path, kind: changeKinds[section.kind] }]
}

const changeKinds: Record<PatchSection["kind"], ChangedPath["kind"]> = {
  add: "created",
  update: "changed",
  delete: "deleted",
}

function changeLine(planned: PlannedSection | undefined): string {
  if (!planned) return ""
  const { section, file, target } = planned
  if (target) return `R ${file.title} -> ${target.title}`
  return `${letters[section.kind]} ${file.title}`
}

const letters: Record<PatchSection["kind"], string> = { add: "A", update: "M", delete: "D" }

function report(planned: PlannedSection): string {
  const loose = planned.hunks.filter(({ strategy }) => strategy !== "exact")
  const line = changeLine(planned)
  if (loose.length === 0) return line
  const places = loose.map((hunk) => `line ${hunk.line} (${hunk.strategy})`).join(", ")
  return `${line}\n  matched only after differences in white space or look-alike characters were ignored: ${places}. Check the change:\n${planned.diff.slice(0, maxShownDiff)}`
}

/** Maximum length of the diff shown to the model for a file with inexact matches, in characters. */
const maxShownDiff = 4_000

/** The result of formatting the files in a patch. */
interface PatchFormatting {
  /** Text for the model: the diff of each file that formatters changed, and the failures. */
  reports: string
  /** Formatting changes and failures, by file. */
  metadata: {
    formatted?: (Formatting & { path: string })[]
    notFormatted?: { path: string; problem: string }[]
  }
}

/**
 * Time limit for formatting all files in a patch, in milliseconds. During this time, other sessions cannot change the
 * files.
 */
const maxFormattingMs = 30_000

/**
 * Formats the written files one after the other, within one time limit. The caller must hold the locks for these files.
 * Updates `stamps`, which are keyed by path. Never rejects: the reports contain the failures.
 */
async function formatPatch(
  planned: readonly PlannedSection[],
  stamps: Map<string, FileStamp>,
  ctx: ToolContext,
): Promise<PatchFormatting> {
  const message = `formatting the whole patch took longer than the limit of ${maxFormattingMs / 1_000} s`
  return withTimeLimit({ ms: maxFormattingMs, message, signal: ctx.abort }, (abort) =>
    formatEach(planned, stamps, { ...ctx, abort }),
  )
}

async function formatEach(
  planned: readonly PlannedSection[],
  stamps: Map<string, FileStamp>,
  ctx: ToolContext,
): Promise<PatchFormatting> {
  let reports = ""
  const formatted: (Formatting & { path: string })[] = []
  const notFormatted: { path: string; problem: string }[] = []
  const titles = new Map(
    planned.map(({ file, target }) => [(target ?? file).before.real, (target ?? file).title]),
  )
  for (const { path, bytes } of planned.flatMap(({ steps }) => steps)) {
    const stamp = stamps.get(path)
    if (!stamp || !bytes) continue
    const title = titles.get(path) ?? showName(path)
    const written = await formatFile(ctx, { path, real: path, title, bytes, stamp })
    stamps.set(path, written.stamp)
    reports += formatReport(title, written)
    if (written.formatted) formatted.push({ path, ...written.formatted })
    if (written.problem !== undefined) notFormatted.push({ path, problem: written.problem })
  }
  return {
    reports,
    metadata: {
      formatted: formatted.length > 0 ? formatted : undefined,
      notFormatted: notFormatted.length > 0 ? notFormatted : undefined,
    },
  }
}
