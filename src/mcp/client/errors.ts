import { TackleError } from "../../util/errors.ts"

/** Thrown if a server is unavailable, for example because it did not start or ended too often. */
export class McpServerError extends TackleError {
  constructor(server: string, why: string, cause?: unknown) {
    super(`The MCP server ${server} is unavailable: ${why}`, {
      code: "mcp.unavailable",
      recoverable: true,
      cause,
    })
  }
}

/** Thrown if a server requires the user to sign in. */
export class McpSignInError extends TackleError {
  constructor(server: string, why: string, cause?: unknown) {
    super(`${why} To sign in: tackle mcp auth ${server}`, {
      code: "mcp.sign-in",
      recoverable: true,
      cause,
    })
  }
}

/** Thrown if a request to a server fails, or if a server's own request cannot be answered. */
export class McpCallError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "mcp.call", recoverable: true, cause })
  }
}

/** Reports that a tool differs from the tool that the user allowed. */
export class McpToolChangedError extends TackleError {
  constructor(tools: readonly string[]) {
    const [those, them] = tools.length === 1 ? ["this tool", "it"] : ["these tools", "them"]
    super(
      `${tools.join(", ")}: the definition or server of ${those} has changed since you allowed ${them}, so the next call requires permission again. \`tackle mcp list\` shows the current descriptions.`,
      { code: "mcp.tool-changed", recoverable: true },
    )
  }
}
