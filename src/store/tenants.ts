import { TackleError } from "../util/errors.ts"
import { dayMs } from "../util/sweep.ts"
import { counted } from "../util/words.ts"

/** Limits for one tenant across all processes that share a store. A tenant without a limit is unlimited. */
export interface TenantLimits {
  /** Maximum number of sessions that run at once. Subagent sessions do not count. Inputs of further sessions wait. */
  sessions?: number
  /** Maximum number of tokens per day (UTC), excluding cache reads. */
  tokensPerDay?: number
  /** Maximum cost per day (UTC) in US dollars, at the prices in the config. */
  costPerDay?: number
  /** Maximum number of pending inputs, counted across all of the tenant's sessions. Further inputs are rejected. */
  queued?: number
}

/** A tenant's current usage. `tokens` and `cost` are the totals of one day. */
export interface TenantUsage {
  /** Number of sessions that engines are running, except subagent sessions. */
  running: number
  /** Number of pending inputs. */
  queued: number
  tokens: number
  /** In US dollars. */
  cost: number
}

/** The usage by one model request. */
export interface UsageRecord {
  tenant: string
  /** Id of the request. A second record with the same id and day replaces the first. */
  id: string
  /** Number of the day: see {@link dayOf}. */
  day: number
  tokens: number
  cost: number
}

/** Returns the number of days (UTC) from the epoch to a time in milliseconds. */
export function dayOf(time: number): number {
  return Math.floor(time / dayMs)
}

const waitSeconds = 5

/** Thrown if a tenant has reached one of its limits. Nothing was started or stored. */
export class TenantLimitError extends TackleError {
  /** Time in seconds after which the request may succeed. */
  readonly retryAfterSeconds: number

  constructor(tenant: string, limit: keyof TenantLimits, maximum: number, now: number = Date.now()) {
    const isDaily = limit === "tokensPerDay" || limit === "costPerDay"
    const problem = {
      sessions: `already runs ${counted(maximum, "session")}`,
      queued: `already has ${counted(maximum, "waiting input")}`,
      tokensPerDay: `has used all ${maximum} of today's tokens`,
      costPerDay: `has spent today's budget of $${maximum}`,
    }[limit]
    const next = isDaily ? "Try again after 00:00 UTC" : "Try again when a run has finished"
    super(
      `The tenant ${tenant} ${problem}. ${next}, or ask the operator to raise tenants.${tenant}.${limit} in the config.`,
      { code: `tenant.${names[limit]}`, recoverable: false },
    )
    this.retryAfterSeconds = isDaily ? Math.ceil(((dayOf(now) + 1) * dayMs - now) / 1000) : waitSeconds
  }
}

const names = { sessions: "sessions", queued: "queue", tokensPerDay: "tokens", costPerDay: "cost" } as const
