import { setTimeout as delay } from "node:timers/promises"
import type { Client, ClientConfig, Pool, QueryResultRow } from "pg"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { postgresMigrations } from "./postgres-migrations.ts"
import { StoreError, StoreUnreachableError } from "./store.ts"

/** A result row. Values of type `bigint` are strings. */
export type Row = QueryResultRow

/** Runs one statement and returns its rows. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<Row[]>

/**
 * An open database whose tables have the newest version. The functions throw {@link StoreError} if the database fails.
 */
export interface PostgresConnection {
  /** The schema that contains Tackle's tables, as a quoted identifier. */
  readonly schema: string
  /** Name of the channel for change notifications. */
  readonly channel: string
  /**
   * Runs a statement. If the connection is lost, waits for the server and runs the statement again. The statement must
   * therefore be idempotent. The server prepares it once per connection.
   */
  query: Query
  /** Runs statements in one transaction. Does not retry after an error. */
  transact<T>(work: (query: Query) => Promise<T>): Promise<T>
  /** Runs `work`. If it fails because the connection is lost, waits for the server and runs `work` again. */
  lasting<T>(work: () => Promise<T>): Promise<T>
  /** Returns a new, unopened connection for notifications. */
  createClient(): Client
  /** Returns true if the backend process with this id serves {@link query} or {@link transact}. */
  isOwnBackend(pid: number): boolean
  readonly isClosed: boolean
  close(): Promise<void>
}

/** The database and how to connect to it. */
export interface ConnectionOptions {
  url: string
  /** Name of the schema. */
  schema: string
  /** Maximum time in milliseconds to wait for a server that does not answer. */
  retryMs: number
  /** Maximum number of connections. */
  connections: number
}

/** Oldest supported server version, in the format of `server_version_num`. */
const oldestServer = 150_000

/**
 * Opens a database. Throws {@link StoreError} if the database cannot be used, or if its tables do not have the newest
 * version.
 */
export async function openPostgresConnection(options: ConnectionOptions): Promise<PostgresConnection> {
  const connection = await connect(options)
  try {
    const version = await readVersion(connection.query, options.schema)
    assertKnownVersion(version, options)
    if (version < postgresMigrations.length)
      throw new StoreError(
        `Tackle's tables in ${describe(options)} are ${version === 0 ? "missing" : "too old"}. ` +
          "Run `tackle db migrate --database URL`, or call `migratePostgres` with the same options, then try again.",
      )
    return connection
  } catch (error) {
    await connection.close()
    throw error
  }
}

/**
 * Creates the schema and migrates its tables to the newest version, in one transaction. Returns the versions before and
 * after. Throws {@link StoreError} and changes nothing if the schema belongs to another program or to a newer version
 * of Tackle.
 */
export async function migrateSchema(options: ConnectionOptions): Promise<{ before: number; after: number }> {
  const connection = await connect(options)
  const { schema } = connection
  try {
    return await connection.transact(async (query) => {
      // Two processes must not migrate at the same time.
      await query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [
        `tackle migrate ${options.schema}`,
      ])
      const before = await readVersion(query, options.schema)
      assertKnownVersion(before, options)
      if (before === 0) {
        // Checks first whether the schema exists, because a role may have the right to use a schema but not to create
        // one.
        const [existing] = await query("SELECT FROM pg_namespace WHERE nspname = $1", [options.schema])
        if (!existing) await query(`CREATE SCHEMA ${schema}`)
        await query(`CREATE TABLE ${schema}.version (version int NOT NULL)`)
        await query(`INSERT INTO ${schema}.version VALUES (0)`)
      }
      for (const migration of postgresMigrations.slice(before)) await query(migration(schema))
      const after = postgresMigrations.length
      await query(`UPDATE ${schema}.version SET version = $1`, [after])
      return { before, after }
    })
  } finally {
    await connection.close()
  }
}

/** Returns the tables' version, or 0 if the schema has no tables. */
async function readVersion(query: Query, name: string): Promise<number> {
  const [server] = await query(
    `SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding,
       current_setting('server_version') AS name`,
  )
  if (server?.encoding !== "UTF8")
    throw new StoreError(
      `The database has the encoding ${server?.encoding}, but Tackle needs UTF8. Create another database: createdb --encoding UTF8 --template template0 NAME`,
    )
  if (Number(server.version) < oldestServer)
    throw new StoreError(`Tackle needs PostgreSQL 15 or newer. The server has version ${server.name}.`)
  const tables = await query(
    `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relkind = 'r'`,
    [name],
  )
  if (tables.length === 0) return 0
  if (
    !tables.some(({ relname }) => relname === "version") ||
    !tables.some(({ relname }) => relname === "leases")
  )
    throw new StoreError(
      `The schema ${quoted(name)} belongs to another program. Use another database for Tackle. Nothing was changed.`,
    )
  const [row] = await query(`SELECT version FROM ${quoted(name)}.version`)
  return Number(row?.version ?? 0)
}

function assertKnownVersion(version: number, options: ConnectionOptions): void {
  if (version <= postgresMigrations.length) return
  throw new StoreError(
    `Tackle's tables in ${describe(options)} have version ${version}; this version of Tackle supports up to version ` +
      `${postgresMigrations.length}. Update Tackle, or use another database. Nothing was changed.`,
  )
}

async function connect(options: ConnectionOptions): Promise<PostgresConnection> {
  const pg = await loadDriver()
  const config: ClientConfig = {
    connectionString: checkedUrl(options.url),
    application_name: "tackle",
    keepAlive: true,
    connectionTimeoutMillis: 10_000,
    // Detects a server that disappeared without closing the connection.
    query_timeout: 60_000,
  }
  const pool = new pg.Pool({
    ...config,
    Client: lossTolerant(pg.Client),
    max: options.connections,
    allowExitOnIdle: true,
  })
  // An idle connection failed. The pool replaces it.
  pool.on("error", () => {})
  const backends = new Set<number>()
  pool.on("connect", (client) => {
    const { processID } = client as unknown as { processID: number }
    backends.add(processID)
    client.once("end", () => backends.delete(processID))
  })
  let isClosed = false
  let ending: Promise<void> | undefined

  const fail = (error: unknown) => postgresError(error, options)

  function assertOpen(): void {
    if (isClosed) throw new StoreError("The store is closed.")
  }

  const connection: PostgresConnection = {
    schema: quoted(options.schema),
    channel: `${options.schema}_changes`,
    query: (text, values = []) =>
      connection.lasting(() => {
        assertOpen()
        return run(pool, text, values)
      }),
    lasting: (work) => whileLost(work, options),
    async transact(work) {
      assertOpen()
      const client = await pool.connect().catch((error: unknown) => Promise.reject(fail(error)))
      let isBroken = true
      try {
        await client.query("BEGIN")
        const result = await work(async (text, values = []) => {
          try {
            return (await client.query(text, values.length > 0 ? [...values] : undefined)).rows
          } catch (error) {
            throw fail(error)
          }
        })
        await client.query("COMMIT")
        isBroken = false
        return result
      } catch (error) {
        throw fail(error)
      } finally {
        // Closing the connection also ends the transaction.
        client.release(isBroken)
      }
    },
    createClient: () => new pg.Client(config),
    isOwnBackend: (pid) => backends.has(pid),
    get isClosed() {
      return isClosed
    },
    close() {
      isClosed = true
      ending ??= pool.end()
      return ending
    },
  }
  try {
    // Does not wait for the server, so that a wrong address is reported immediately.
    await run(pool, "SELECT 1", [])
  } catch (error) {
    await connection.close()
    throw fail(error)
  }
  return connection
}

/**
 * Runs `work`, and repeats it for up to `retryMs` milliseconds while it fails with a temporary error, such as a lost
 * connection. After that time, throws {@link StoreUnreachableError}. Throws {@link StoreError} for other errors.
 */
export async function whileLost<T>(
  work: () => Promise<T>,
  { retryMs, ...database }: Pick<ConnectionOptions, "url" | "schema" | "retryMs">,
): Promise<T> {
  const deadline = performance.now() + retryMs
  for (let pause = 20; ; pause = Math.min(pause * 2, 1000)) {
    try {
      return await work()
    } catch (error) {
      const isLost = isTransient(StoreError.isThrown(error) ? error.cause : error)
      if (!isLost) throw postgresError(error, database)
      if (performance.now() + pause > deadline)
        throw new StoreUnreachableError(postgresError(error, database).message, error)
    }
    await delay(pause)
  }
}

/**
 * Names of prepared statements, keyed by their text. A prepared statement belongs to a connection, so all stores can
 * share the names.
 */
const names = new Map<string, string>()

async function run(pool: Pool, text: string, values: readonly unknown[]): Promise<Row[]> {
  let name = names.get(text)
  if (name === undefined) {
    name = `tackle_${names.size}`
    names.set(text, name)
  }
  const { rows } = await pool.query({ name, text, values: [...values] })
  return rows
}

/**
 * Returns a class of connections whose loss never ends the process. The pool has no listener for the errors of a
 * connection while it passes the connection on. The next statement reports the loss.
 */
function lossTolerant(Parent: typeof Client): typeof Client {
  return class extends Parent {
    constructor(config?: string | ClientConfig) {
      super(config)
      this.on("error", () => {})
    }
  }
}

/** Loads `pg` and returns a {@link lossTolerant} client class. Throws {@link StoreError} if `pg` is not installed. */
export const loadLossTolerantClient = async (): Promise<typeof Client> =>
  lossTolerant((await loadDriver()).Client)

async function loadDriver(): Promise<Pick<typeof import("pg"), "Client" | "Pool">> {
  try {
    return (await import("pg")).default
  } catch (error) {
    if (systemCode(error) !== "ERR_MODULE_NOT_FOUND") throw error
    throw new StoreError(
      "PostgreSQL needs the package pg, which is not installed. Install it next to Tackle: npm install pg",
      error,
    )
  }
}

/**
 * Returns the URL if it is valid. Otherwise, throws {@link StoreError}. The message does not quote the URL, because the
 * URL may contain a password.
 */
function checkedUrl(url: string): string {
  if (/^postgres(ql)?:\/\//.test(url) && URL.canParse(withHost(url))) return url
  throw new StoreError(
    "The database URL is not valid. Example: postgres://user@host:5432/tackle (or, on a Unix socket, " +
      "postgres:///tackle?host=/var/run/postgresql).",
  )
}

/**
 * Returns a name as an SQL identifier. Throws {@link StoreError} if the name is invalid or PostgreSQL would truncate
 * it.
 */
function quoted(name: string): string {
  if (!/^[a-z_][a-z0-9_]{0,39}$/.test(name))
    throw new StoreError(
      `The schema name ${JSON.stringify(name)} is not valid. Use up to 40 lower-case letters, digits and "_".`,
    )
  return `"${name}"`
}

/** Returns a description of the database that contains neither the user nor the password. */
function describe({ url, schema }: Pick<ConnectionOptions, "url" | "schema">): string {
  const { host, pathname, searchParams } = new URL(withHost(url))
  const where = searchParams.get("host") ?? host
  return `the database ${pathname.slice(1) || "(default)"} on ${where} (schema ${schema})`
}

/** Returns the URL with a host. The URL of a Unix socket may have no host, but the parser requires one. */
function withHost(url: string): string {
  return url.replace(/^(\w+:\/\/[^@/]*@?)\//, "$1localhost/")
}

/**
 * Error codes of temporary conditions: the server is unavailable, has no free connection, or rolled back the
 * transaction because of a concurrent one or because this process was suspended.
 */
const transientCodes =
  /^(08...|57P0[123]|25P03|40001|40P01|53300|E(CONN(RESET|REFUSED|ABORTED)|PIPE|TIMEDOUT|NOENT|HOSTUNREACH))$/

/** Returns true for an error after which the same statement can succeed. */
export function isTransient(error: unknown): boolean {
  const code = systemCode(error)
  if (code !== undefined) return transientCodes.test(code)
  return error instanceof Error && /connection|timeout/i.test(error.message)
}

/** Explanations of PostgreSQL's and the system's error codes for the user, each with the next step. */
const meanings: [RegExp, string][] = [
  [
    /^(ECONN|EHOST|ENET|ETIMEDOUT|ENOENT|EPIPE|08)/,
    "cannot be reached. Check that the server is running, and check the host and port in the URL.",
  ],
  [/^(ENOTFOUND|EAI_AGAIN)/, "cannot be reached: its host is unknown. Check the URL."],
  [/^28/, "rejects the login. Check the user and password in the URL, PGPASSWORD, or ~/.pgpass."],
  [/^3D000/, "does not exist. Create it: createdb --encoding UTF8 NAME"],
  [
    /^42501/,
    "denies access to its tables. Grant the role the rights that docs/scale.md lists, or migrate with the owner's role.",
  ],
  [/^57P0[123]/, "is starting or stopping. Try again in a moment."],
  [/^53300/, "has no free connection. Increase max_connections, or use a connection pool."],
  [/^53/, "has no free disk space or memory. Free some, then try again."],
  [/^25006/, "is read-only, for example because it is a standby. Use the primary server."],
  [/^(42|3F)/, "has missing or wrong tables. Run `tackle db migrate`, or restore a backup."],
  [/^23503/, "rejected a change, because the session or message to which it belongs does not exist."],
  [/^(XX|58)/, "is damaged, or its disk has failed. Check the server's log."],
]

/** Converts an error to a {@link StoreError}. Returns Tackle's own errors unchanged. */
export function postgresError(
  error: unknown,
  options: Pick<ConnectionOptions, "url" | "schema">,
): TackleError {
  if (TackleError.isInstance(error)) return error
  const code = systemCode(error) ?? (isTransient(error) ? "08006" : "")
  const meaning = meanings.find(([pattern]) => pattern.test(code))?.[1] ?? "rejected a statement."
  const subject = describe(options)
  return new StoreError(`T${subject.slice(1)} ${meaning} (${errorMessage(error)})`, error)
}
