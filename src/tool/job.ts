/** Background processes of all sessions. Jobs end with the process that started them. */
export interface JobCapability {
  list(): JobInfo[]
  get(id: string): Job | undefined
  add(job: Job): void
}

/** One background job, as `bash` hands it over and the `job` tool uses it. */
export interface Job {
  info(): JobInfo
  /** The output so far: head and tail where it is long, with the path of the whole. */
  output(): { text: string; truncated: boolean; outputPath?: string }
  /** SIGTERM to the whole group, SIGKILL after the grace period; resolves when it is gone. */
  kill(): Promise<void>
  /** Undefined where its input is closed, or it has ended. */
  readonly input?: JobInput | undefined
}

/** A process that outlived the shell which started it. Times in milliseconds since the epoch. */
export interface JobInfo {
  id: string
  /** The session whose call started it: no other one may see or end it. */
  sessionID: string
  command: string
  status: "running" | "exited" | "killed"
  startedAt: number
  endedAt?: number
  /** Bytes it has written so far. */
  bytes: number
}

/** What a job reads. */
export interface JobInput {
  /** Where the job's command was started. Absolute. */
  workdir: string
  /** Resolves when the job's pipe has taken the text, which waits while it is full. Rejects where nobody reads any more. */
  write(text: string): Promise<void>
  /** Nothing more comes. */
  end(): void
}
