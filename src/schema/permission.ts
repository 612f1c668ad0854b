import * as z from "zod"

/** The decision for a request. `ask` means that the user decides. */
export const Action = z.enum(["allow", "ask", "deny"])
export type Action = z.infer<typeof Action>

/** The origin of a rule: a file and line (from 1), or a name such as `defaults` or `--allow`. */
export const RuleSource = z.lazy(() => z.object({ file: z.string(), line: z.number().optional() }))
export type RuleSource = z.infer<typeof RuleSource>

/** An action for requests that match `permission` and `pattern`, which can contain `*` and `?`. */
export const Rule = z.lazy(() =>
  z.object({
    permission: z.string(),
    pattern: z.string(),
    action: Action,
    source: RuleSource.optional(),
  }),
)
export type Rule = z.infer<typeof Rule>

/** Rules in the order in which they were written. The last matching rule decides. */
export type Ruleset = readonly Rule[]

/**
 * The call that makes a request. `parent` is set in a subagent, and contains the `task` call and the subagent's name.
 */
export const CallReference = z.lazy(() =>
  z.object({
    messageID: z.string(),
    callID: z.string(),
    parent: z
      .object({ sessionID: z.string(), messageID: z.string(), callID: z.string(), agent: z.string() })
      .optional(),
  }),
)
export type CallReference = z.infer<typeof CallReference>

/** One of the permissions that a request needs. */
export const PermissionPart = z.object({
  permission: z.string(),
  patterns: z.array(z.string()),
  /** Patterns that "always" allows. Empty if "always" is not offered. */
  always: z.array(z.string()),
})
export type PermissionPart = z.infer<typeof PermissionPart>

/** A request for the user's permission. It is allowed or rejected as a whole. */
export const PermissionRequest = z.lazy(() =>
  PermissionPart.extend({
    id: z.string(),
    sessionID: z.string(),
    /** Other permissions that the call needs, such as `edit` for a command that writes a file. */
    also: z.array(PermissionPart).optional(),
    /**
     * Rules that would allow the request, in the format of `--allow`, such as `bash:npm test`. Empty if no such rules are
     * known.
     */
    rules: z.array(z.string()),
    /** Information for the decision, such as a diff, the command, or the resolved path. */
    metadata: z.record(z.string(), z.unknown()),
    tool: CallReference.optional(),
  }),
)
export type PermissionRequest = z.infer<typeof PermissionRequest>

/** A reply to a request. With `always`, the reply can narrow the offered patterns and set the scope of the grant. */
export const PermissionReply = z.lazy(() =>
  z.discriminatedUnion("reply", [
    z.object({ reply: z.literal("once") }),
    z.object({
      reply: z.literal("always"),
      scope: z.enum(["session", "project"]).default("session"),
      patterns: z.array(z.string()).optional(),
    }),
    z.object({ reply: z.literal("reject"), message: z.string().optional() }),
  ]),
)
export type PermissionReply = z.infer<typeof PermissionReply>

/** The source of a reply to a permission request. */
export type ReplySource = "user" | "auto" | "no-terminal" | "client" | "grant" | "abort"

/** A rule that the user granted. Applies to a session or to a worktree. */
export const Grant = z.lazy(() =>
  z.object({
    id: z.string(),
    scope: z.enum(["session", "project"]),
    /** Id of the session. Set if the scope is `session`. */
    sessionID: z.string().optional(),
    worktree: z.string(),
    permission: z.string(),
    pattern: z.string(),
    action: Action,
    time: z.object({ created: z.number() }),
  }),
)
export type Grant = z.infer<typeof Grant>
