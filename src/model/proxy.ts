import { readFile } from "node:fs/promises"
import { errorMessage, UsageError } from "../util/errors.ts"

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Makes `fetch` honour `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY` (lower case too) and `SSL_CERT_FILE`, whose certificates
 * are trusted beside the usual ones. `NODE_EXTRA_CA_CERTS` needs nothing: Node reads it when it starts. Addresses of
 * this machine never go through a proxy. Without these variables nothing is loaded and nothing happens. Call it before
 * the first request; the function it returns takes it back. Throws `UsageError` for a proxy or a file that is no good.
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
      // The lone star excludes everything; in a list it would mean nothing.
      no_proxy: excluded ? (excluded.trim() === "*" ? "*" : `${excluded},${loopback}`) : loopback,
    })
  } catch (error) {
    throw new UsageError(`The proxy in the environment cannot be used: ${errorMessage(error)}`, error)
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
    // Node takes any text without a word; this one refuses what is no certificate.
    new X509Certificate(added)
    setDefaultCACertificates([...before, added])
  } catch (error) {
    throw new UsageError(`SSL_CERT_FILE (${path}) cannot be used: ${errorMessage(error)}`, error)
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
