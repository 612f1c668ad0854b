/** What programs look at to find a proxy, in both spellings. The loopback is reached without it. */
export function proxyVariables(port: number): Record<string, string> {
  const url = `http://127.0.0.1:${port}`
  const direct = "localhost,127.0.0.1,::1"
  return Object.fromEntries(
    [
      ["http_proxy", url],
      ["https_proxy", url],
      ["all_proxy", url],
      ["no_proxy", direct],
    ].flatMap(([name = "", value = ""]) => [
      [name, value],
      [name.toUpperCase(), value],
    ]),
  )
}
