import { describeSource, type RegisteredTool } from "./registered-tool.ts"

/** Something that kept a tool out. Shown to the person; never stops the others. */
export interface RegistryProblem {
  /** File of the tool that was left out. */
  file: string
  message: string
}

/** Adds a problem of the tool, once. */
export function report(problems: RegistryProblem[], entry: RegisteredTool, message: string): void {
  const file = describeSource(entry.source)
  if (!problems.some((known) => known.file === file && known.message === message))
    problems.push({ file, message })
}

/** What tells one problem from another. */
export function textOfProblem({ file, message }: RegistryProblem): string {
  return `${file}: ${message}`
}
