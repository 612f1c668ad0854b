import { describe } from "vitest"
import { postgresPrograms } from "./postgres-server.ts"

export { type PostgresServer, startPostgres } from "./postgres-server.ts"

/**
 * Defines tests that need PostgreSQL. Without its programs they are skipped. With `TACKLE_TEST_COMPLETE=1`, as in CI,
 * they run and fail.
 */
export const describePostgres =
  postgresPrograms !== undefined || process.env.TACKLE_TEST_COMPLETE === "1" ? describe : describe.skip
