/** Returns a server-sent event. The data repeats the name of the event as `type`. */
export function namedEvent(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}
