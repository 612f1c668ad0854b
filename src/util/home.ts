import { homedir, userInfo } from "node:os"

/** The person's home directory. An empty `HOME` is none: taken as it is, it would be whatever directory we are in. */
export function homeDirectory(): string {
  return homedir() || userInfo().homedir
}
