import * as z from "zod"
import { errorMessage, UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"

/** What is kept of signing in to a provider, in the form that OpenCode's plugins know. `expires`: milliseconds since 1970. */
export const StoredAuth = z.lazy(() =>
  z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("api"), key: z.string() }),
    z.looseObject({
      type: z.literal("oauth"),
      refresh: z.string(),
      access: z.string(),
      expires: z.number(),
    }),
  ]),
)
export type StoredAuth = z.infer<typeof StoredAuth>

/** A plugin's way to a provider: how to sign in, and what the provider's package gets of it. */
export interface AuthHook {
  /** Id of the provider. */
  provider: string
  /** What the package gets beside the config's options, such as `apiKey`, `baseURL`, `headers` and `fetch`. */
  loader?: (auth: () => Promise<StoredAuth | undefined>, provider: Record<string, unknown>) => unknown
  methods: AuthMethod[]
}

/** One way to sign in. */
export interface AuthMethod {
  type: "api" | "oauth"
  label: string
  /** What the person is asked before: a text each. */
  prompts: { key: string; message: string }[]
  authorize?: (inputs: Record<string, string>) => unknown
}

/** What a person does at the provider's page. `auto`: the plugin hears of it; `code`: they bring a code. */
export interface PageStep {
  url: string
  instructions: string
  method: "auto" | "code"
  /** Waits for the end, in `code` with what the person brought. Throws `UsageError` where it failed. */
  finish(code?: string): Promise<StoredAuth>
}

const Method = z.lazy(() =>
  z.object({
    type: z.enum(["api", "oauth"]),
    label: z.string(),
    prompts: z
      .array(z.looseObject({ type: z.string().optional(), key: z.string(), message: z.string() }))
      .default([]),
    authorize: z
      .custom<NonNullable<AuthMethod["authorize"]>>((value) => typeof value === "function")
      .optional(),
  }),
)

const Shape = z.lazy(() =>
  z.object({
    provider: z.string().min(1),
    loader: z.custom<NonNullable<AuthHook["loader"]>>((value) => typeof value === "function").optional(),
    methods: z.array(Method).default([]),
  }),
)

/** The `auth` of what a plugin returned. Throws `TypeError` where it is none. */
export function readAuthHook(value: unknown): AuthHook {
  const parsed = Shape.safeParse(value)
  if (!parsed.success)
    throw new TypeError('its "auth" is not { provider, loader, methods } as plugins for providers have it')
  const { provider, loader, methods } = parsed.data
  return {
    provider,
    ...(loader === undefined ? {} : { loader }),
    methods: methods.map(({ prompts, authorize, ...about }) => ({
      ...about,
      prompts: prompts.map(({ key, message }) => ({ key, message })),
      ...(authorize === undefined ? {} : { authorize }),
    })),
  }
}

/** The hook with all that its methods start run by `contain`: what escapes them, then or later, is not for our process. */
export function containAuth(
  { methods, ...hook }: AuthHook,
  contain: (work: () => Promise<unknown>) => Promise<unknown>,
): AuthHook {
  const within =
    (authorize: NonNullable<AuthMethod["authorize"]>) => async (inputs: Record<string, string>) => {
      const step = await contain(async () => authorize(inputs))
      if (!isRecord(step)) return step
      const { callback } = step
      if (typeof callback !== "function") return step
      return { ...step, callback: (code?: string) => contain(async () => callback(code)) }
    }
  return {
    ...hook,
    methods: methods.map(({ authorize, ...about }) => ({
      ...about,
      ...(authorize === undefined ? {} : { authorize: within(authorize) }),
    })),
  }
}

/** Signs in by a method that has a page. Throws `UsageError` where the plugin fails or gives none. */
export async function beginPage(
  { label, authorize }: AuthMethod,
  inputs: Record<string, string>,
): Promise<PageStep> {
  const step = await told(label, async () => authorize?.(inputs))
  const { url, instructions, method, callback } = isRecord(step) ? step : {}
  if (typeof url !== "string" || typeof callback !== "function")
    throw new UsageError(`The plugin's way "${label}" leads to no page.`)
  return {
    url,
    instructions: typeof instructions === "string" ? instructions : "",
    method: method === "code" ? "code" : "auto",
    finish: async (code) => readOutcome(label, await told(label, () => callback(code))),
  }
}

/** Signs in by a key, which the plugin may make of what the person gave. Throws `UsageError` where it is refused. */
export async function keyBy(
  { label, authorize }: AuthMethod,
  key: string,
  inputs: Record<string, string>,
): Promise<StoredAuth> {
  if (!authorize) return { type: "api", key }
  return readOutcome(label, await told(label, async () => authorize({ ...inputs, key })))
}

async function told(label: string, work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work()
  } catch (error) {
    throw new UsageError(`Signing in by "${label}" failed: ${errorMessage(error)}`, error)
  }
}

function readOutcome(label: string, outcome: unknown): StoredAuth {
  if (!isRecord(outcome) || outcome.type !== "success")
    throw new UsageError(`Signing in by "${label}" failed: the provider or the plugin refused.`)
  const { type: _, provider: __, ...kept } = outcome
  const stored = StoredAuth.safeParse({ ...kept, type: "key" in kept ? "api" : "oauth" })
  if (stored.success) return stored.data
  throw new UsageError(`The plugin's way "${label}" gave neither a key nor tokens.`)
}
