import { type Bus, createBus } from "../event/bus.ts"
import { type ContentStore, createContentStore, defaultContentLimits } from "../files/content-store.ts"
import { createPathLocks, type FileCommits } from "../files/file-tracker.ts"
import { createFormatterService, type FormatterService } from "../formatter/service.ts"
import type { LanguageService } from "../lsp/service.ts"
import { createQuestions, type Questions } from "../session/questions.ts"
import { type Features, readFeatures } from "../tools/availability.ts"
import { createJobTable, type JobTable } from "../tools/command/job-table.ts"
import { chooseSearch, type SearchBackend } from "../tools/web/search-backend.ts"
import { realPath } from "../util/paths.ts"
import { type CommandSandbox, openCommandSandbox } from "./command-sandbox.ts"
import type { Foundation } from "./foundation.ts"
import { openLanguages } from "./languages.ts"
import { type LiveDefinitions, openDefinitions } from "./live-definitions.ts"
import { createModelChoice, type ModelChoice } from "./model-choice.ts"
import { openModels } from "./models.ts"
import { defaultRetentionLimits, type RetentionLimits } from "./retention.ts"

/** The parts of an engine that stand by themselves: none knows of sessions, and none of another. */
export interface Equipment {
  bus: Bus
  jobs: JobTable
  fileCommits: FileCommits
  questions: Questions
  /** Agents, commands and skills. */
  definitions: LiveDefinitions
  models: ReturnType<typeof openModels>
  modelChoice: ModelChoice
  sandbox: CommandSandbox
  retention: RetentionLimits
  contents: ContentStore
  search: SearchBackend
  features: Features
  /** Absent where language servers are switched off. */
  languages: LanguageService | undefined
  /** Absent where no formatter is switched on. */
  formatter: FormatterService | undefined
}

/** Opens them. What has to end is put into `opening`. */
export async function openEquipment(
  foundation: Foundation,
  opening: AsyncDisposableStack,
): Promise<Equipment> {
  const { given, options, place, places, variables, processes } = foundation
  const { temporaries, placeholders, mask, credentials, plugins } = foundation
  const { environment, worktree, onProblem } = place
  const bus = createBus((error) => onProblem("a subscriber threw", error), mask.value)
  if (plugins) bus.subscribe(plugins.tell)
  const models = openModels(options, credentials, plugins, place)
  const sandbox = openCommandSandbox(options, place, placeholders)
  opening.defer(() => sandbox.close())
  const retention = { ...defaultRetentionLimits, ...options.limits?.retention }
  const search = chooseSearch(environment, options.search)
  const features = readFeatures({
    environment,
    experimental: options.experimental ?? {},
    search: search.configured,
  })
  const languages = openLanguages(options, {
    worktree,
    features,
    environment: variables,
    record: processes.add,
  })
  opening.defer(() => languages?.close())
  const formatter = createFormatterService({
    config: options.formatter ?? false,
    worktree: realPath(worktree),
    trusted: options.trusted ?? false,
    environment: variables,
    record: processes.add,
  })
  const definitions = await openDefinitions({ options, given, source: options.definitions, onProblem })
  return {
    bus,
    jobs: createJobTable(),
    fileCommits: { locks: createPathLocks(), trackTemporary: temporaries.track },
    questions: createQuestions((event) => bus.publish(event)),
    definitions,
    models,
    modelChoice: createModelChoice(models, options.model),
    sandbox,
    retention,
    contents: createContentStore(places.snapshots, {
      ...defaultContentLimits,
      days: retention.days,
      totalBytes: retention.megabytes * 1024 * 1024,
    }),
    search: search.backend,
    features,
    languages,
    formatter,
  }
}
