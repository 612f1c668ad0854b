import { TackleError } from "../../util/errors.ts"

/**
 * Thrown if a page cannot be fetched. The code consists of `webfetch.` and the reason, such as `webfetch.url`.
 */
export class WebfetchError extends TackleError {
  /**
   * Reasons:
   * - `url`: the URL is invalid or unsupported.
   * - `network`: the host is unknown or unreachable, or the transfer failed.
   * - `redirect`: there are too many redirects.
   * - `status`: the server returned an HTTP error.
   * - `size`: the page is too large.
   * - `content`: the page is not text, an image or a PDF, has an unsupported encoding, or cannot be converted.
   */
  constructor(
    why: "url" | "network" | "redirect" | "status" | "size" | "content",
    message: string,
    cause?: unknown,
  ) {
    super(message, { code: `webfetch.${why}`, recoverable: true, cause })
  }
}
