import * as z from "zod"
import { errorMessage, UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"

/**
 * Stored credentials for a provider, in the format that OpenCode's plugins use. `expires` is in milliseconds since the
 * epoch.
 */
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

/** A plugin's sign-in methods for a provider, and its options for the provider's package. */
export interface AuthHook {
  /** Provider id. */
  provider: string
  /** Returns options for the provider's package, such as `apiKey`, `baseURL`, `headers` and `fetch`. */
  loader?: (auth: () => Promise<StoredAuth | undefined>, provider: Record<string, unknown>) => unknown
  methods: AuthMethod[]
}

/** A sign-in method. */
export interface AuthMethod {
  type: "api" | "oauth"
  label: string
  /** Text questions that the user answers before signing in. */
  prompts: { key: string; message: string }[]
  authorize?: (inputs: Record<string, string>) => unknown
}

/**
 * The provider's sign-in page. With the method `auto`, the plugin waits for the result. With `code`, the user enters a
 * code.
 */
export interface PageStep {
  url: string
  instructions: string
  method: "auto" | "code"
  /**
   * Completes the sign-in. `code` is the user's code, which the method `code` requires. Throws `UsageError` if the
   * sign-in fails.
   */
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

/** Parses the `auth` hook. Throws `TypeError` if the hook is invalid. */
export function readAuthHook(value: unknown): AuthHook {
  const parsed = Shape.safeParse(value)
  if (!parsed.success) throw new TypeError('its "auth" is invalid: expected { provider, loader, methods }')
  const { provider, loader, methods } = parsed.data
  return {
    provider,
    loader,
    methods: methods.map(({ prompts, authorize, ...about }) => ({
      ...about,
      prompts: prompts.map(({ key, message }) => ({ key, message })),
      authorize,
    })),
  }
}

/**
 * Wraps the functions of the hook's methods in `contain`, so that errors that escape these functions do not end the
 * process.
 */
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
      authorize: authorize && within(authorize),
    })),
  }
}

/** Starts a sign-in method that has a page. Throws `UsageError` if the plugin fails or returns no page. */
export async function openSignInPage(
  { label, authorize }: AuthMethod,
  inputs: Record<string, string>,
): Promise<PageStep> {
  const step = await asSignIn(label, async () => authorize?.(inputs))
  const { url, instructions, method, callback } = isRecord(step) ? step : {}
  if (typeof url !== "string" || typeof callback !== "function")
    throw new UsageError(`The plugin's method "${label}" returned no sign-in page.`)
  return {
    url,
    instructions: typeof instructions === "string" ? instructions : "",
    method: method === "code" ? "code" : "auto",
    finish: async (code) => readOutcome(label, await asSignIn(label, () => callback(code))),
  }
}

/**
 * Signs in with a key. If the method has an `authorize` function, this function receives the key and the user's
 * answers, and can replace or reject the key. Throws `UsageError` if the key is rejected or the plugin fails.
 */
export async function signInByKey(
  { label, authorize }: AuthMethod,
  key: string,
  inputs: Record<string, string>,
): Promise<StoredAuth> {
  if (!authorize) return { type: "api", key }
  return readOutcome(label, await asSignIn(label, async () => authorize({ ...inputs, key })))
}

async function asSignIn(label: string, work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work()
  } catch (error) {
    throw new UsageError(`Signing in with "${label}" failed: ${errorMessage(error)}`, error)
  }
}

function readOutcome(label: string, outcome: unknown): StoredAuth {
  if (!isRecord(outcome) || outcome.type !== "success")
    throw new UsageError(
      `Signing in with "${label}" failed: the provider or the plugin rejected the sign-in.`,
    )
  const { type: _, provider: __, ...kept } = outcome
  const stored = StoredAuth.safeParse({ ...kept, type: "key" in kept ? "api" : "oauth" })
  if (stored.success) return stored.data
  throw new UsageError(`The plugin's method "${label}" returned neither a key nor tokens.`)
}
