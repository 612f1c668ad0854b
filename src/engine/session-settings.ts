import { defaultRetryLimits } from "../model/retry.ts"
import { defaultStreamLimits } from "../model/stream.ts"
import { defaultToolBytes } from "../session/deferred-tools.ts"
import type { SessionServices } from "../session/services.ts"
import type { TackleOptions } from "./options.ts"

type SessionSettings = Pick<
  SessionServices,
  | "attach"
  | "instructions"
  | "instructionsNear"
  | "outputLimits"
  | "recorded"
  | "retry"
  | "spillBytes"
  | "streamLimits"
  | "toolBytes"
>

/** What the options say of sessions, with its defaults. */
export function sessionSettings({
  attach,
  instructions = [],
  instructionsNear,
  limits = {},
  recorded,
  toolSearch,
}: TackleOptions): SessionSettings {
  return {
    instructions,
    streamLimits: { ...defaultStreamLimits, ...limits.stream },
    retry: { ...defaultRetryLimits, ...limits.retry },
    ...(toolSearch === false ? {} : { toolBytes: toolSearch?.maxBytes ?? defaultToolBytes }),
    ...(instructionsNear ? { instructionsNear } : {}),
    ...(limits.output === undefined ? {} : { outputLimits: limits.output }),
    ...(limits.spillBytes === undefined ? {} : { spillBytes: limits.spillBytes }),
    ...(recorded === undefined ? {} : { recorded }),
    ...(attach === undefined ? {} : { attach }),
  }
}
