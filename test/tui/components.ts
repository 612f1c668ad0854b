import { stripVTControlCharacters } from "node:util"
import { type Component, visibleWidth } from "@earendil-works/pi-tui"
import { expect, vi } from "vitest"
import type { PermissionRequest } from "../../src/schema/permission.ts"
import { quietMs } from "../../src/tui/card-parts.ts"
import { builtInTheme } from "../../src/tui/theme.ts"

/** The theme of tests of components. */
export const theme = builtInTheme("dark", "256")

/** The functions that tests of cards replace, so that they control the time. */
export const cardTimers = ["setTimeout", "clearTimeout", "setImmediate", "clearImmediate"] as const

/** Lets the time pass after which a card accepts keys. */
export function pause(): void {
  // The immediate that ends the pause runs one millisecond later.
  vi.advanceTimersByTime(quietMs + 1)
}

/** Keys as a terminal sends them. */
export const keys = {
  enter: "\r",
  escape: "\u001b",
  up: "\u001b[A",
  down: "\u001b[B",
  pageDown: "\u001b[6~",
  pageUp: "\u001b[5~",
  backspace: "\u007f",
  tab: "\t",
  focusIn: "\u001b[I",
  paste: (text: string) => `\u001b[200~${text}\u001b[201~`,
}

/** Renders without styles. Fails if a line is wider than the width. */
export function rendered(component: Component, width = 80): string {
  const lines = component.render(width)
  for (const line of lines) expect(visibleWidth(line), line).toBeLessThanOrEqual(width)
  return lines
    .map((line) => stripVTControlCharacters(line).replaceAll("\u001b_pi:c\u0007", "").trimEnd())
    .join("\n")
}

/** Returns a request for `bash`. */
export function bashRequest(command: string, more: Partial<PermissionRequest> = {}): PermissionRequest {
  return {
    id: "per_1",
    sessionID: "ses_1",
    permission: "bash",
    patterns: [command],
    always: [`${command.split(" ")[0]} *`],
    rules: [],
    metadata: {
      command,
      decidedBy: [{ permission: "bash", pattern: "*", action: "ask", source: "defaults" }],
    },
    ...more,
  }
}
