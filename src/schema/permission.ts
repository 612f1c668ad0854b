import * as z from "zod"

/** What becomes of what is asked for. `ask`: a person decides. */
export const Action = z.enum(["allow", "ask", "deny"])
export type Action = z.infer<typeof Action>

/** Where a rule was written: a file with its line (from 1), or words such as `defaults` or `--allow`. */
export const RuleSource = z.lazy(() => z.object({ file: z.string(), line: z.number().optional() }))
export type RuleSource = z.infer<typeof RuleSource>

/** "For requests of this permission whose pattern matches: this action." Both fields may hold `*` and `?`. */
export const Rule = z.lazy(() =>
  z.object({
    permission: z.string(),
    pattern: z.string(),
    action: Action,
    source: RuleSource.optional(),
  }),
)
export type Rule = z.infer<typeof Rule>

/** Rules in written order: the last that matches decides. */
export type Ruleset = readonly Rule[]

/** The call that a request comes from. `parent`: the `task` call that a subagent works for, and the subagent's name. */
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

/** A question to a person: may this call do these things? Allowed only as a whole. */
export const PermissionRequest = z.lazy(() =>
  z.object({
    id: z.string(),
    sessionID: z.string(),
    permission: z.string(),
    patterns: z.array(z.string()),
    /** The patterns that "always" would allow from then on. Empty: "always" is not on offer. */
    always: z.array(z.string()),
    /** What the person has to see to decide: a diff, the command, the resolved path. */
    metadata: z.record(z.string(), z.unknown()),
    tool: CallReference.optional(),
  }),
)
export type PermissionRequest = z.infer<typeof PermissionRequest>

/** `always` may narrow the patterns on offer and say how far the grant reaches. */
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

/** Who answered a request. */
export type ReplySource = "person" | "auto" | "no-terminal" | "grant" | "abort"

/** A rule that a person granted. Bound to a session or, for a project, to its worktree. */
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
