import { closeSync } from "node:fs"
import { openInputPipe, openPipe, type Pipe } from "./pipe.ts"

/** The pipes between us and a program. Without `errors` its standard error goes to the output. */
export interface Pipes {
  output: Pipe
  errors?: Pipe
  input?: Pipe
}

/** All that are wanted, or none. Throws `PipeError`. */
export async function openPipes(wanted: { errors: boolean; input: boolean }): Promise<Pipes> {
  const pipes: Pipes = { output: await openPipe() }
  try {
    if (wanted.errors) pipes.errors = await openPipe()
    if (wanted.input) pipes.input = await openInputPipe()
    return pipes
  } catch (error) {
    for (const end of [...ownEnds(pipes), ...childEnds(pipes)]) closeSync(end)
    throw error
  }
}

/** What stays with us. */
export function ownEnds({ output, errors, input }: Pipes): number[] {
  return [output.read, ...(errors ? [errors.read] : []), ...(input ? [input.write] : [])]
}

/** What the program gets; to be closed here once it has them. */
export function childEnds({ output, errors, input }: Pipes): number[] {
  return [output.write, ...(errors ? [errors.write] : []), ...(input ? [input.read] : [])]
}
