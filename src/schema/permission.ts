import * as z from "zod"

/** The decision for a request. `ask`: the user decides. */
export const Action = z.enum(["allow", "ask", "deny"])
export type Action = z.infer<typeof Action>

/** The origin of a rule: a file and line (from 1), or a name such as `defaults` or `--allow`. */
export const RuleSource = z.lazy(() => z.object({ file: z.string(), line: z.number().optional() }))
export type RuleSource = z.infer<typeof RuleSource>

/** Applies an action to requests whose permission and pattern match. Both may contain `*` and `?`. */
export const Rule = z.lazy(() =>
  z.object({
    permission: z.string(),
    pattern: z.string(),
    action: Action,
    source: RuleSource.optional(),
  }),
)
export type Rule = z.infer<typeof Rule>

/** Rules in written order. The last matching rule decides. */
export type Ruleset = readonly Rule[]

/** The call that makes a request. `parent`: the `task` call of a subagent, and the name of the subagent. */
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

/** A request for the user's permission. It is allowed or rejected as a whole. */
export const PermissionRequest = z.lazy(() =>
  z.object({
    id: z.string(),
    sessionID: z.string(),
    permission: z.string(),
    patterns: z.array(z.string()),
    /** The patterns that "always" allows. Empty: "always" is not offered. */
    always: z.array(z.string()),
    /** Information for the decision: a diff, the command, the resolved path. */
    metadata: z.record(z.string(), z.unknown()),
    tool: CallReference.optional(),
  }),
)
export type PermissionRequest = z.infer<typeof PermissionRequest>

/** A reply to a request. `always` may narrow the offered patterns and set the scope of the grant. */
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

/** The source of a reply. */
export type ReplySource = "user" | "auto" | "no-terminal" | "grant" | "abort"

/** A rule that the user granted. Applies to a session or to a worktree. */
export const Grant = z.lazy(() =>
  z.object({
    id: z.string(),
    scope: z.enum(["session", "project"]),
    /** Set with scope `session`. */
    sessionID: z.string().optional(),
    worktree: z.string(),
    permission: z.string(),
    pattern: z.string(),
    action: Action,
    time: z.object({ created: z.number() }),
  }),
)
export type Grant = z.infer<typeof Grant>
