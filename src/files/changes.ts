/** Keeps what files were before a call changed them, so that the person can undo the turn. */
export interface ChangeCapability {
  /**
   * Runs a change whose bytes are known, under the locks of its files. What was there before is safe when `work`
   * starts. Rejects as `work` does.
   */
  files<T>(
    change: { before: readonly FileContent[]; after: readonly FileContent[] },
    work: () => Promise<T>,
  ): Promise<T>
  /** Runs a command that may change any file of the worktree, and looks for what it changed. Rejects as `work` does. */
  command<T>(text: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

/** What stands at a resolved path before or after a change. No bytes: no file. */
export interface FileContent {
  path: string
  bytes: Uint8Array | undefined
}
