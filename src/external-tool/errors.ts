import { TackleError } from "../util/errors.ts"

/**
 * Thrown when an external tool violates the protocol or ends without a result. This is a bug in the tool, not in the
 * call.
 */
export class ExternalToolError extends TackleError {
  constructor(message: string, code: "protocol" | "ended" | "manifest" | "failed" | "copy") {
    super(message, { code: `external-tool.${code}`, recoverable: true })
  }
}
