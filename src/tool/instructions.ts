/** Instructions that lie deeper in the project than those the model has from the start. */
export interface InstructionCapability {
  /** Those of the directories down to the file (links followed) that the session was not given yet, the nearest last. */
  near(file: string): Promise<FoundInstructions[]>
}

/** A text of instructions that holds for the files below a directory. */
export interface FoundInstructions {
  /** Absolute, with every link followed. */
  path: string
  /** Headed by where it is from. */
  text: string
}
