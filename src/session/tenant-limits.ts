import type { MessageError } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import type { Spent } from "../schema/spending.ts"
import type { LeaseLimit, Store } from "../store/store.ts"
import { dayOf, TenantLimitError, type TenantLimits } from "../store/tenants.ts"
import { countTokens, sumUsage } from "./budget.ts"

/** Applies tenant limits to an engine's sessions. Sessions without a tenant have no limits. */
export interface TenantGuard {
  /**
   * Returns the limit on the number of sessions that run at once, or undefined if the number is unlimited or the
   * session belongs to a subagent.
   */
  leaseLimit(session: Session): LeaseLimit | undefined
  /** Returns the maximum cost per day in US dollars, or undefined if the cost is unlimited. */
  costLimit(session: Session): number | undefined
  /**
   * Throws {@link TenantLimitError} if too many of the tenant's inputs wait, or if the tenant has reached a daily
   * limit. Calls that run at the same time, even in one process, may each exceed the limit on waiting inputs by one.
   */
  assertAdmits(session: Session): Promise<void>
  /** Throws {@link TenantLimitError} if the tenant has reached a daily limit. */
  assertNotExhausted(session: Session): Promise<void>
  /** Returns the reason to end a run if its tenant has reached a daily limit, or undefined otherwise. */
  exhausted(session: Session): Promise<MessageError | undefined>
  /** Records the usage of a model request. `id` identifies the request. */
  record(session: Session, id: string, spent: Spent): Promise<void>
}

/** Creates the guard for limits by tenant. The limits for `*` apply to tenants without their own entry. */
export function createTenantGuard(
  store: Pick<Store, "addUsage" | "tenantUsage">,
  limits: Readonly<Record<string, TenantLimits>>,
): TenantGuard {
  function limitsOf({ tenant }: Session): TenantLimits {
    if (tenant === undefined) return {}
    return (Object.hasOwn(limits, tenant) ? limits[tenant] : limits["*"]) ?? {}
  }

  /** Returns the error for the first of the given limits that the tenant has reached. */
  async function reached(
    session: Session,
    names: readonly (keyof TenantLimits)[],
  ): Promise<TenantLimitError | undefined> {
    const { tenant } = session
    const own = limitsOf(session)
    if (tenant === undefined || names.every((name) => own[name] === undefined)) return undefined
    const now = Date.now()
    const { running, queued, tokens, cost } = await store.tenantUsage(tenant, dayOf(now))
    const used = { sessions: running, queued, tokensPerDay: tokens, costPerDay: cost }
    const name = names.find((each) => used[each] >= (own[each] ?? Number.POSITIVE_INFINITY))
    return name && new TenantLimitError(tenant, name, own[name] ?? 0, now)
  }

  async function assertBelow(session: Session, names: readonly (keyof TenantLimits)[]): Promise<void> {
    const error = await reached(session, names)
    if (error) throw error
  }

  return {
    leaseLimit(session) {
      const { sessions } = limitsOf(session)
      // A subagent session runs as part of its parent.
      if (session.tenant === undefined || sessions === undefined || session.parentID !== undefined)
        return undefined
      return { tenant: session.tenant, sessions }
    },
    costLimit: (session) => limitsOf(session).costPerDay,
    assertAdmits: (session) => assertBelow(session, ["tokensPerDay", "costPerDay", "queued"]),
    assertNotExhausted: (session) => assertBelow(session, daily),
    async exhausted(session) {
      const error = await reached(session, daily)
      return error && { name: "limit", message: `The run was stopped. ${error.message}` }
    },
    async record({ tenant }, id, spent) {
      if (tenant === undefined) return
      const tokens = countTokens(sumUsage([spent]))
      if (tokens === 0 && spent.cost === 0) return
      await store.addUsage({ tenant, id, day: dayOf(Date.now()), tokens, cost: spent.cost })
    },
  }
}

const daily = ["tokensPerDay", "costPerDay"] as const
