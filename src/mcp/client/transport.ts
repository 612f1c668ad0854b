import type { Transport } from "@modelcontextprotocol/client"

/** A transport that can explain its own errors. */
export interface ServerTransport extends Transport {
  /** Returns why the server does not answer: how it ended, else the message of the error. */
  explain(error: unknown): string
  /** Returns true if the connection is unusable after the error. */
  isLost(error: unknown): boolean
  /** Returns true if the error says that the server does not speak this transport. It may speak an older one. */
  isUnsupported(error: unknown): boolean
}
