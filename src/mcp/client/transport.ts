import type { Transport } from "@modelcontextprotocol/client"

/** A transport that can explain its own errors. */
export interface ServerTransport extends Transport {
  /** Returns why the server does not answer: how it ended, or the error message. */
  explain(error: unknown): string
  /** Returns true if the connection can no longer be used after the error. */
  isLost(error: unknown): boolean
  /**
   * Returns true if the error shows that the server does not support this transport. The server may support an older
   * transport.
   */
  isUnsupported(error: unknown): boolean
}
