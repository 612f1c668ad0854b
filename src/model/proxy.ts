import { readFile } from "node:fs/promises"
import { errorMessage, UsageError } from "../util/errors.ts"

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Applies the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY` (also in lower case) and `SSL_CERT_FILE` to
 * all HTTP requests of this process. Must be called before the first request. Adds the certificates in `SSL_CERT_FILE`
 * to the default certificates. `localhost`, `127.0.0.1` and `[::1]` never use a proxy. Returns a function that restores
 * the previous settings. Throws `UsageError` if the proxy or the certificate file is invalid.
 */
export async function useNetworkSettings(environment: Environment): Promise<() => void> {
  const restoreCertificates = await trustCertificates(environment)
  const restoreProxy = await useProxy(environment)
  return () => {
    restoreProxy()
    restoreCertificates()
  }
}

const proxyVariables = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"]
const loopback = "localhost,127.0.0.1,[::1]"

async function useProxy(environment: Environment): Promise<() => void> {
  if (!proxyVariables.some((name) => environment[name])) return () => {}
  const { setGlobalProxyFromEnv } = await import("node:http")
  const excluded = environment.no_proxy || environment.NO_PROXY
  try {
    return setGlobalProxyFromEnv({
      ...pick(environment, proxyVariables),
      // `*` alone excludes all hosts, but it has no meaning in a list.
      no_proxy: excluded ? (excluded.trim() === "*" ? "*" : `${excluded},${loopback}`) : loopback,
    })
  } catch (error) {
    throw new UsageError(`Cannot use the proxy from the environment: ${errorMessage(error)}`, error)
  }
}

async function trustCertificates(environment: Environment): Promise<() => void> {
  const path = environment.SSL_CERT_FILE
  if (!path) return () => {}
  const { X509Certificate } = await import("node:crypto")
  const { getCACertificates, setDefaultCACertificates } = await import("node:tls")
  const before = getCACertificates("default")
  try {
    const added = await readFile(path, "utf8")
    // Node accepts any text here, but this constructor rejects invalid certificates.
    new X509Certificate(added)
    setDefaultCACertificates([...before, added])
  } catch (error) {
    throw new UsageError(`Cannot use SSL_CERT_FILE (${path}): ${errorMessage(error)}`, error)
  }
  return () => setDefaultCACertificates(before)
}

function pick(environment: Environment, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = environment[name]
      return value ? [[name, value]] : []
    }),
  )
}
