import { TackleError } from "../../util/errors.ts"

/** The server cannot be used: it did not start, is not reached, or ended too often. */
export class McpServerError extends TackleError {
  constructor(server: string, why: string, cause?: unknown) {
    super(`The MCP server ${server} cannot be used: ${why}`, {
      code: "mcp.unavailable",
      recoverable: true,
      cause,
    })
  }
}

/** The server wants the person to sign in, which is not done in passing. */
export class McpSignInError extends TackleError {
  constructor(server: string, why: string, cause?: unknown) {
    super(`${why} Sign in to it: tackle mcp auth ${server}`, {
      code: "mcp.sign-in",
      recoverable: true,
      cause,
    })
  }
}

/** The server was called and answered with an error, or not at all. */
export class McpCallError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "mcp.call", recoverable: true, cause })
  }
}

/** Tools are not any more what a person allowed. */
export class McpToolChangedError extends TackleError {
  constructor(tools: string) {
    super(
      `${tools}: the MCP server describes it otherwise than when it was allowed, or is another one. It is asked for again; \`tackle mcp list\` shows what it says now.`,
      { code: "mcp.tool-changed", recoverable: true },
    )
  }
}
