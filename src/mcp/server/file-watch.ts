import { fileStamp } from "../../util/file-stamp.ts"
import { whereItLeads } from "./resource-tools.ts"

/** A file by the name a client has for it, and where that led when leave was given. Absolute. */
export interface WatchedPlace {
  path: string
  real: string
}

/** Looks whether files are still what they were: by a `stat` each, so that it works on every file system. */
export interface FileWatch {
  /** Calls the listener after every change of the file, also when it comes or goes. Returns the end. */
  add(place: WatchedPlace, onChanged: () => void): () => void
}

/** People edit and programs build; nobody waits for less. In milliseconds. */
const defaultEveryMs = 1000

/** One timer for all files, and none where there are no files. It keeps no process alive. */
export function createFileWatch(everyMs = defaultEveryMs): FileWatch {
  const watched = new Set<{ place: WatchedPlace; stamp: string; onChanged(): void }>()
  let timer: NodeJS.Timeout | undefined

  function look(): void {
    for (const entry of watched) {
      const stamp = stampOf(entry.place)
      if (stamp === entry.stamp) continue
      entry.stamp = stamp
      entry.onChanged()
    }
  }

  return {
    add(place, onChanged) {
      const entry = { place, stamp: stampOf(place), onChanged }
      watched.add(entry)
      timer ??= setInterval(look, everyMs).unref()
      return () => {
        watched.delete(entry)
        if (watched.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
    },
  }
}

/** Leave was given for one file: where the name leads to another now, of that one nothing is told. */
function stampOf({ path, real }: WatchedPlace): string {
  return whereItLeads(path) === real ? fileStamp(real) : "elsewhere"
}
