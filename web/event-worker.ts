import { createEventHub, type WindowMessage } from "./event-hub.ts"

/** Runs the hub once for all windows of a browser. */
const connect = createEventHub()

addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports
  if (!port) return
  const receive = connect((message) => port.postMessage(message))
  port.onmessage = ({ data }: MessageEvent<WindowMessage>) => receive(data)
})
