import { TackleError } from "../../util/errors.ts"

/** A page that could not be had. The text says why and what to do. Codes: `webfetch.url`, `webfetch.status`… */
export class WebfetchError extends TackleError {
  /**
   * `url`: no address that is fetched. `network`: nobody answered. `redirect`: too many of them. `status`: an answer
   * that says no. `size`: too large. `content`: nothing that could be shown.
   */
  constructor(
    why: "url" | "network" | "redirect" | "status" | "size" | "content",
    message: string,
    cause?: unknown,
  ) {
    super(message, { code: `webfetch.${why}`, recoverable: true, cause })
  }
}
