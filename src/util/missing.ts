import { systemCode } from "./errors.ts"

/** What the file system answers; undefined where there is no such file or directory. Other faults are thrown. */
export async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    const code = systemCode(error)
    if (code === "ENOENT" || code === "ENOTDIR") return undefined
    throw error
  }
}
