import { TackleError } from "../../util/errors.ts"

/**
 * A page that could not be fetched. The message contains the reason and the next step. Codes: `webfetch.url`,
 * `webfetch.status`…
 */
export class WebfetchError extends TackleError {
  /**
   * `url`: invalid or unsupported URL. `network`: host unknown or unreachable. `redirect`: too many redirects. `status`:
   * HTTP error. `size`: too large. `content`: not text, image or PDF, or not convertible.
   */
  constructor(
    why: "url" | "network" | "redirect" | "status" | "size" | "content",
    message: string,
    cause?: unknown,
  ) {
    super(message, { code: `webfetch.${why}`, recoverable: true, cause })
  }
}
