import { text as readAll } from "node:stream/consumers"
import type { Command } from "commander"
import type { Tackle } from "../../engine/tackle.ts"
import { type AuthMethod, openSignInPage, type StoredAuth, signInByKey } from "../../plugin/auth.ts"
import { UsageError } from "../../util/errors.ts"
import { didYouMean } from "../../util/similarity.ts"
import { visible } from "../../view/visible.ts"
import { askForKey, atTerminal, keyProblem, question } from "../process/question.ts"
import { printHint, printJson, printLine } from "../process/stdout.ts"
import { withStore, withTackle } from "../workspace/engine.ts"
import {
  type FormatFlags,
  openWorkspace,
  type Workspace,
  type WorkspaceFlags,
} from "../workspace/workspace.ts"
import { formatFlag, jsonFlag, locationFlags, projectFlags } from "./flags.ts"

/** Defines `tackle auth` and its subcommands. */
export function defineAuth(auth: Command): void {
  projectFlags(auth.command("login"))
    .description("save an API key, or sign in with a plugin's method")
    .argument("<provider>", "provider id, the first part of provider/model")
    .option("--method <name>", "label of the plugin's sign-in method")
    .action(logIn)
  projectFlags(auth.command("list"))
    .description("list the providers you are signed in to, and the sign-in methods that plugins offer")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(listLogins)
  locationFlags(auth.command("logout"))
    .description("delete a provider's stored credentials")
    .argument("<provider>", "provider id")
    .action(logOut)
}

/**
 * Flags for `tackle auth login`. `method` is the label of a plugin's sign-in method. If it is not set and several
 * methods exist, the user chooses one.
 */
export interface LoginFlags extends WorkspaceFlags {
  method?: string
}

/** Sign-in method for providers for which no plugin offers a method. */
const plainKey: AuthMethod = { type: "api", label: "API key", prompts: [] }

/**
 * Runs `tackle auth login <provider>`, which asks for a key or runs a plugin's sign-in method, and stores the
 * credentials. Without a terminal, reads the key from stdin. Throws `UsageError` if the provider or the method is
 * unknown, or if no valid credentials are entered.
 */
export async function logIn(provider: string, flags: LoginFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  await withTackle(workspace, async (tackle) => {
    assertKnown(provider, tackle, workspace)
    const ofPlugins = tackle.signIns().filter((each) => each.provider === provider)
    const methods = ofPlugins.flatMap((each) => each.methods)
    const method = await chosenMethod(methods.length > 0 ? methods : [plainKey], flags.method)
    await tackle.credentials.save(provider, await signInBy(method))
  })
  printLine(`Signed in to ${visible(provider)}.`)
}

/**
 * Runs `tackle auth list`, which shows the providers with credentials and the sign-in methods that plugins offer. Never
 * shows keys.
 */
export async function listLogins(flags: FormatFlags): Promise<void> {
  const { kept, offered } = await withTackle(await openWorkspace(flags), async (tackle) => ({
    kept: await tackle.credentials.providers(),
    offered: tackle
      .signIns()
      .map(({ provider, methods }) => ({ provider, methods: methods.map(({ label }) => label) })),
  }))
  if (flags.format === "json") return printJson({ providers: kept, methods: offered })
  for (const provider of kept) printLine(`${visible(provider)}  signed in`)
  for (const { provider, methods } of offered)
    printLine(`${visible(provider)}  plugin: ${methods.map(visible).join(", ")}`)
  if (kept.length === 0) printHint("No credentials are stored. To sign in: tackle auth login <provider>")
}

/** Runs `tackle auth logout <provider>`, which deletes the stored credentials. The provider is not notified. */
export async function logOut(provider: string, flags: WorkspaceFlags): Promise<void> {
  await withStore(flags, async ({ credentials }) => {
    const kept = await credentials.providers()
    if (!kept.includes(provider))
      throw new UsageError(
        `No credentials are stored for "${provider}". Providers with credentials: ${kept.join(", ") || "none"}.`,
      )
    await credentials.save(provider, undefined)
  })
  printLine(`Signed out of ${visible(provider)}. The provider was not notified.`)
}

/**
 * Throws `UsageError` for an unknown provider, because Tackle would never use a key that is stored under an unknown
 * name.
 */
function assertKnown(provider: string, tackle: Tackle, { config }: Workspace): void {
  const known = [...new Set([...tackle.providers(), ...tackle.signIns().map((each) => each.provider)])]
  if (known.includes(provider)) return
  const hint = didYouMean(provider, known) ?? `Available providers: ${known.join(", ")}.`
  const untrusted =
    config.ignored.length > 0
      ? " To use the providers that the project's config defines, trust the project with --trust."
      : ""
  throw new UsageError(
    `The provider "${provider}" does not exist. ${hint} Define other providers in the config under "provider".${untrusted}`,
  )
}

async function chosenMethod(methods: readonly AuthMethod[], wanted: string | undefined): Promise<AuthMethod> {
  const names = methods.map(({ label }) => label).join(", ")
  const [first, ...others] = methods
  if (wanted !== undefined) {
    const found = methods.find(({ label }) => label === wanted)
    if (found) return found
    throw new UsageError(`Unknown sign-in method "${wanted}" in --method. Available methods: ${names}.`)
  }
  if (first && others.length === 0) return first
  if (!atTerminal())
    throw new UsageError(`Choose a sign-in method with --method. Available methods: ${names}.`)
  const options = methods.map((method) => ({ value: method, label: visible(method.label) }))
  return given(
    await question(({ select }, signal) =>
      select({ message: "How do you want to sign in?", options, output: process.stderr, signal }),
    ),
  )
}

async function signInBy(method: AuthMethod): Promise<StoredAuth> {
  const inputs: Record<string, string> = {}
  for (const { key, message } of method.prompts) inputs[key] = await askFor(visible(message))
  if (method.type === "api") return await signInByKey(method, await readKey(), inputs)
  const page = await openSignInPage(method, inputs)
  printLine(`Sign in here:\n  ${visible(page.url)}`)
  if (page.instructions !== "") printLine(visible(page.instructions))
  return await page.finish(page.method === "code" ? await askFor("The code from the page") : undefined)
}

async function readKey(): Promise<string> {
  if (atTerminal()) return given(await askForKey("API key"))
  const key = (await readAll(process.stdin)).trim()
  if (key === "")
    throw new UsageError("stdin contained no key. To type the key, run the command in a terminal.")
  const problem = keyProblem(key)
  if (problem !== undefined) throw new UsageError(`stdin contained no valid key. ${problem}`)
  return key
}

async function askFor(message: string): Promise<string> {
  if (!atTerminal())
    throw new UsageError(`Cannot ask "${message}" without a terminal. Run this command in a terminal.`)
  return given(
    await question(({ text }, signal) => text({ message, validate: filled, output: process.stderr, signal })),
  ).trim()
}

function filled(value: string | undefined): string | undefined {
  return value?.trim() ? undefined : "The value cannot be empty."
}

function given<T>(answer: T | undefined): T {
  if (answer === undefined) throw new UsageError("You canceled the sign-in. Nothing was saved.")
  return answer
}
