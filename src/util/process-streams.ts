import { Socket } from "node:net"

/** What a program writes, as it is read. */
export interface ProcessOutput {
  /** When nothing holds it open any more, or it was stopped. */
  readonly closed: Promise<void>
  open(): boolean
  /** What comes from now on is not read. */
  stop(): void
  unref(): void
}

/** Reads it to its end, into one buffer over and over: a new one for each piece would cost 80 MB of memory at high speed. */
export function readOutput(descriptor: number, onOutput: (bytes: Uint8Array) => void): ProcessOutput {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const socket = new Socket({
    fd: descriptor,
    readable: true,
    writable: false,
    onread: {
      buffer: Buffer.allocUnsafeSlow(readBytes),
      callback(length, buffer) {
        onOutput(buffer.subarray(0, length))
        return true
      },
    },
  })
  socket.once("end", () => socket.destroy())
  // A pipe that cannot be read has nothing more to tell: "close" follows.
  socket.on("error", () => {})
  socket.once("close", () => resolve())
  return {
    closed,
    open: () => !socket.destroyed,
    stop: () => void socket.destroy(),
    unref: () => void socket.unref(),
  }
}

/** As much as a pipe holds on Linux: no read gives more. */
const readBytes = 64 * 1024

/** The outputs of one program as one. */
export function joinOutputs(readers: readonly ProcessOutput[]): ProcessOutput {
  return {
    closed: Promise.all(readers.map((reader) => reader.closed)).then(() => {}),
    open: () => readers.some((reader) => reader.open()),
    stop: () => readers.forEach((reader) => void reader.stop()),
    unref: () => readers.forEach((reader) => void reader.unref()),
  }
}

/** The standard input of a running program. */
export interface ProcessInput {
  /** Resolves when the program's pipe has taken it, which waits while it is full. Rejects where nobody reads any more. */
  write(text: string): Promise<void>
  /** The program reads the end of its input once it has read what was written. */
  end(): void
}

/** Writes to a program, from a descriptor that is ours. `stop` drops what it has not taken. */
export function writeInput(descriptor: number): ProcessInput & { stop(): void } {
  const socket = new Socket({ fd: descriptor, readable: false, writable: true })
  // Whoever writes hears of it; when nobody writes, nobody need know that the program reads no more.
  socket.on("error", () => {})
  socket.unref()
  return {
    write(text) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      socket.write(text, (error) => (error ? reject(error) : resolve()))
      return promise
    },
    end: () => void socket.end(),
    stop: () => void socket.destroy(),
  }
}
