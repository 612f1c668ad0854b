import { describeProblem, type Problem } from "../config/errors.ts"
import { wholeName } from "../config/shown-name.ts"
import { createTackle } from "../engine/runtime.ts"
import type { Tackle } from "../engine/tackle.ts"
import { limitsOf } from "./engine-options.ts"
import { eventLogger } from "./log-events.ts"
import { warn } from "./notice.ts"
import { openPlaceAnyhow, type Place, type PlaceFlags } from "./place.ts"
import { tellFault } from "./tell-fault.ts"

/**
 * Opens an engine for what is stored, for a piece of work, and closes it. It has no plugins, tools or servers, and takes of
 * the config what is secret and how long files are kept. So mistakes in config files do not stop it: they are told in one
 * line. Where what is stored leaves for others, `open` has to be `openPlace`: a key that stands beside a mistake is not
 * known, so that it would not be hidden.
 */
export async function withRecords<T>(
  flags: Omit<PlaceFlags, "trust">,
  work: (tackle: Tackle) => Promise<T>,
  open: (flags: PlaceFlags) => Promise<Place> = openPlaceAnyhow,
): Promise<T> {
  const place = await open(flags)
  tellMistakes(place.mistakes)
  const tackle = await createTackle({
    directory: place.directory,
    worktree: place.worktree,
    dataDirectory: place.dataDirectory,
    environment: place.environment,
    mask: place.mask,
    limits: limitsOf(place),
    onProblem: (message, error) => void tellFault(place, message, error),
  })
  tackle.subscribe(eventLogger(place.log))
  try {
    return await work(tackle)
  } finally {
    await tackle.close()
  }
}

/** The first of the mistakes, in one line, with the way to the others. */
export function tellMistakes([first, ...others]: readonly Problem[]): void {
  if (first === undefined) return
  const more = others.length > 0 ? ` (And ${others.length} more: \`tackle doctor\` shows them.)` : ""
  warn(
    `there is a mistake in the config, and that part of it does not count: ${wholeName(describeProblem(first))}${more}`,
  )
}
