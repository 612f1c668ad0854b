import type { Transport } from "@modelcontextprotocol/client"

/** A way to a server that knows its own faults. */
export interface ServerTransport extends Transport {
  /** In words, why it does not answer: how the server ended, else what the error says. */
  explain(error: unknown): string
  /** True where after the error no answer comes this way any more. */
  isLost(error: unknown): boolean
  /** True where the error says that the server does not speak this way, but perhaps an older one. */
  isForeign(error: unknown): boolean
}
