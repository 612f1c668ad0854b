import { TackleError } from "../util/errors.ts"

/** An external tool did not keep to the protocol, or ended without a result. A defect of the tool, not of the call. */
export class ExternalToolError extends TackleError {
  constructor(message: string, code: "protocol" | "ended" | "manifest" | "failed" | "copy") {
    super(message, { code: `external-tool.${code}`, recoverable: true })
  }
}
