/**
 * PostgreSQL schema migrations. Entry n migrates a database from version n to n + 1. A released entry never changes.
 * Each entry only adds objects that the previous version ignores, so that both versions can run at the same time.
 * `schema` is a quoted identifier.
 *
 * Except in `contents`, the column `data` contains the whole object as JSON text: `jsonb` accepts neither NUL
 * characters nor lone surrogates. Ids sort by their bytes, as in SQLite.
 */
export const postgresMigrations: readonly ((schema: string) => string)[] = [
  (schema) => `
  CREATE TABLE ${schema}.sessions (
    id text COLLATE "C" PRIMARY KEY,
    parent_id text COLLATE "C",
    worktree text COLLATE "C" NOT NULL,
    updated double precision NOT NULL,
    seq bigint NOT NULL,
    data text NOT NULL
  );
  CREATE INDEX sessions_by_time ON ${schema}.sessions (updated, id);
  CREATE INDEX sessions_by_worktree ON ${schema}.sessions (worktree, updated, id);
  CREATE INDEX sessions_by_parent ON ${schema}.sessions (parent_id, updated, id);

  -- The number of the last change of a session, and the number of its lease. Each commit updates this row first, which
  -- orders the commits of a session and excludes those of an engine that has lost the lease.
  CREATE TABLE ${schema}.sequences (
    session_id text COLLATE "C" PRIMARY KEY
      REFERENCES ${schema}.sessions (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    seq bigint NOT NULL,
    epoch bigint
  ) WITH (fillfactor = 50);

  CREATE TABLE ${schema}.messages (
    session_id text COLLATE "C" NOT NULL REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (session_id, id)
  );

  CREATE TABLE ${schema}.parts (
    session_id text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (session_id, message_id, id),
    FOREIGN KEY (session_id, message_id) REFERENCES ${schema}.messages (session_id, id) ON DELETE CASCADE
  ) WITH (fillfactor = 80);

  CREATE TABLE ${schema}.removed_parts (
    session_id text COLLATE "C" NOT NULL REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    part_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (session_id, seq)
  );

  CREATE TABLE ${schema}.todos (
    session_id text COLLATE "C" PRIMARY KEY REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    data text NOT NULL
  );

  CREATE TABLE ${schema}.inputs (
    session_id text COLLATE "C" NOT NULL REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    state text NOT NULL,
    position double precision NOT NULL,
    seq bigint NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (session_id, id)
  );
  CREATE INDEX pending_inputs ON ${schema}.inputs (session_id) WHERE state = 'pending';

  CREATE TABLE ${schema}.grants (
    id text COLLATE "C" PRIMARY KEY,
    session_id text COLLATE "C" REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
    worktree text COLLATE "C" NOT NULL,
    created double precision NOT NULL,
    data text NOT NULL
  );
  CREATE INDEX grants_by_session ON ${schema}.grants (session_id);
  CREATE INDEX grants_by_worktree ON ${schema}.grants (worktree);

  CREATE SEQUENCE ${schema}.epochs;
  CREATE TABLE ${schema}.leases (
    session_id text COLLATE "C" PRIMARY KEY REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
    holder_id text COLLATE "C" NOT NULL,
    holder text NOT NULL,
    epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL
  ) WITH (fillfactor = 50);

  -- The index of the search. Words are computed by the program, as for SQLite.
  CREATE TABLE ${schema}.search_texts (
    session_id text COLLATE "C" NOT NULL REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
    message_id text COLLATE "C" NOT NULL,
    part_id text COLLATE "C" NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (session_id, message_id, part_id)
  );
  CREATE INDEX search_words ON ${schema}.search_texts USING gin (words);
  CREATE TABLE ${schema}.search_progress (
    session_id text COLLATE "C" PRIMARY KEY REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
    seq bigint NOT NULL
  );

  -- Applies changes in one round trip, so that a process that stops in the middle holds no lock. An owner is a session
  -- with the number of its changes. With an epoch, its lease must have this number. With an expected seq, the session
  -- must not have changed since. Returns the number before the first change of each owner.
  CREATE FUNCTION ${schema}.commit_changes(
    owners text[], counts bigint[], epochs bigint[], expected bigint[],
    owner int[], kinds text[], ids text[], places text[], worktrees text[], times double precision[],
    states text[], datas text[], channel text
  ) RETURNS bigint[] LANGUAGE plpgsql AS $$
  DECLARE
    lasts bigint[] := '{}';
    firsts bigint[] := '{}';
    next bigint[];
    last bigint;
    n bigint;
    payload text;
  BEGIN
    FOR i IN 1 .. coalesce(cardinality(owners), 0) LOOP
      IF epochs[i] IS NULL AND expected[i] IS NULL THEN
        INSERT INTO ${schema}.sequences AS s (session_id, seq) VALUES (owners[i], counts[i])
        ON CONFLICT (session_id) DO UPDATE SET seq = s.seq + excluded.seq RETURNING s.seq INTO last;
      ELSE
        UPDATE ${schema}.sequences s SET seq = s.seq + counts[i]
        WHERE s.session_id = owners[i] AND (epochs[i] IS NULL OR s.epoch = epochs[i])
          AND (expected[i] IS NULL OR s.seq = expected[i])
        RETURNING s.seq INTO last;
        IF NOT FOUND THEN
          IF epochs[i] IS NOT NULL AND NOT EXISTS (
            SELECT FROM ${schema}.sequences s WHERE s.session_id = owners[i] AND s.epoch = epochs[i]
          ) THEN
            RAISE EXCEPTION USING ERRCODE = 'TK001', MESSAGE = 'the lease of ' || owners[i] || ' has ended';
          END IF;
          RAISE EXCEPTION USING ERRCODE = 'TK002', MESSAGE = owners[i] || ' has changed';
        END IF;
      END IF;
      lasts := lasts || last;
      firsts := firsts || (last - counts[i]);
    END LOOP;
    next := firsts;
    FOR i IN 1 .. coalesce(cardinality(kinds), 0) LOOP
      n := 0;
      IF owner[i] > 0 THEN
        n := next[owner[i]] + 1;
        next[owner[i]] := n;
      END IF;
      CASE kinds[i]
        WHEN 'part' THEN
          INSERT INTO ${schema}.parts (session_id, message_id, id, seq, data)
          VALUES (owners[owner[i]], places[i], ids[i], n, datas[i])
          ON CONFLICT (session_id, message_id, id) DO UPDATE SET seq = excluded.seq, data = excluded.data;
        WHEN 'message' THEN
          INSERT INTO ${schema}.messages (session_id, id, seq, data)
          VALUES (owners[owner[i]], ids[i], n, datas[i])
          ON CONFLICT (session_id, id) DO UPDATE SET seq = excluded.seq, data = excluded.data;
        WHEN 'session' THEN
          INSERT INTO ${schema}.sessions (id, parent_id, worktree, updated, seq, data)
          VALUES (ids[i], places[i], worktrees[i], times[i], n, datas[i])
          ON CONFLICT (id) DO UPDATE SET parent_id = excluded.parent_id, worktree = excluded.worktree,
            updated = excluded.updated, seq = excluded.seq, data = excluded.data;
        WHEN 'input' THEN
          INSERT INTO ${schema}.inputs (session_id, id, state, position, seq, data)
          VALUES (owners[owner[i]], ids[i], states[i], times[i], n, datas[i])
          ON CONFLICT (session_id, id) DO UPDATE SET state = excluded.state, position = excluded.position,
            seq = excluded.seq, data = excluded.data;
        WHEN 'todos' THEN
          INSERT INTO ${schema}.todos (session_id, seq, data) VALUES (owners[owner[i]], n, datas[i])
          ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, data = excluded.data;
        WHEN 'part.remove' THEN
          DELETE FROM ${schema}.parts p
          WHERE p.session_id = owners[owner[i]] AND p.message_id = places[i] AND p.id = ids[i];
          INSERT INTO ${schema}.removed_parts (session_id, seq, message_id, part_id)
          VALUES (owners[owner[i]], n, places[i], ids[i]);
        WHEN 'grant' THEN
          INSERT INTO ${schema}.grants (id, session_id, worktree, created, data)
          VALUES (ids[i], places[i], worktrees[i], times[i], datas[i])
          ON CONFLICT (id) DO UPDATE SET session_id = excluded.session_id, worktree = excluded.worktree,
            created = excluded.created, data = excluded.data;
        WHEN 'grant.remove' THEN
          DELETE FROM ${schema}.grants g WHERE g.id = ids[i];
      END CASE;
    END LOOP;
    IF cardinality(owners) > 0 THEN
      payload := json_object(owners, lasts::text[])::text;
      -- A payload has at most 8000 bytes. An empty one means any session.
      PERFORM pg_notify(channel, CASE WHEN octet_length(payload) < 7900 THEN payload ELSE '' END);
    END IF;
    RETURN firsts;
  END $$;

  CREATE FUNCTION ${schema}.delete_session(root text, channel text) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE
    family text[];
  BEGIN
    WITH RECURSIVE tree AS (
      SELECT id FROM ${schema}.sessions WHERE id = root
      UNION SELECT child.id FROM ${schema}.sessions child JOIN tree ON child.parent_id = tree.id
    ) SELECT array_agg(id) INTO family FROM tree;
    -- In the order of commits, which also update these rows first.
    PERFORM FROM ${schema}.sequences WHERE session_id = ANY (family) ORDER BY session_id FOR UPDATE;
    DELETE FROM ${schema}.sessions WHERE id = ANY (family);
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM pg_notify(channel, '');
    RETURN true;
  END $$;

  -- Leases a session, unless another holder has a lease that has not expired. With "replaces", only replaces the expired
  -- lease of this number. Returns the number of the new lease, or the present holder.
  CREATE FUNCTION ${schema}.take_lease(
    session text, new_holder_id text, new_holder text, ttl interval, replaces bigint,
    OUT taken bigint, OUT present text
  ) LANGUAGE plpgsql AS $$
  DECLARE
    found_lease ${schema}.leases;
    is_expired boolean;
  BEGIN
    PERFORM FROM ${schema}.sequences WHERE session_id = session FOR UPDATE;
    IF NOT FOUND THEN
      RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation', MESSAGE = 'session ' || session || ' does not exist';
    END IF;
    SELECT * INTO found_lease FROM ${schema}.leases WHERE session_id = session FOR UPDATE;
    is_expired := found_lease.expires_at <= clock_timestamp();
    IF (found_lease.holder_id <> new_holder_id AND NOT is_expired)
      OR (replaces IS NOT NULL AND (found_lease.epoch IS DISTINCT FROM replaces OR NOT is_expired)) THEN
      present := found_lease.holder;
      RETURN;
    END IF;
    taken := nextval('${schema}.epochs');
    INSERT INTO ${schema}.leases (session_id, holder_id, holder, epoch, expires_at)
    VALUES (session, new_holder_id, new_holder, taken, clock_timestamp() + ttl)
    ON CONFLICT (session_id) DO UPDATE SET holder_id = excluded.holder_id, holder = excluded.holder,
      epoch = excluded.epoch, expires_at = excluded.expires_at;
    UPDATE ${schema}.sequences SET epoch = taken WHERE session_id = session;
  END $$;

  CREATE FUNCTION ${schema}.end_lease(session text, ended bigint) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE ${schema}.sequences SET epoch = NULL WHERE session_id = session AND epoch = ended;
    DELETE FROM ${schema}.leases WHERE session_id = session AND epoch = ended;
  END $$;
  `,
  (schema) => `
  -- Contents of changed files, by their SHA-256.
  CREATE TABLE ${schema}.contents (
    hash text COLLATE "C" PRIMARY KEY,
    size bigint NOT NULL,
    used timestamptz NOT NULL,
    data bytea NOT NULL
  );
  CREATE INDEX contents_by_use ON ${schema}.contents (used);
  `,
  // Permission requests and questions, both waiting and answered. `stop_epoch` is the number of the lease whose holder
  // was asked to stop.
  (schema) => `
  CREATE TABLE ${schema}.requests (
    id text COLLATE "C" PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL REFERENCES ${schema}.sessions (id) ON DELETE CASCADE,
    epoch bigint NOT NULL,
    is_open boolean NOT NULL,
    data text NOT NULL
  );
  CREATE INDEX requests_by_session ON ${schema}.requests (session_id);
  CREATE INDEX open_requests ON ${schema}.requests (id) WHERE is_open;
  ALTER TABLE ${schema}.leases ADD COLUMN stop_epoch bigint;
  `,
  (schema) => `
  -- Names of tenants need no escapes, so the pattern finds no other text.
  ALTER TABLE ${schema}.sessions ADD COLUMN tenant text COLLATE "C"
    GENERATED ALWAYS AS (substring(data from '"tenant":"([^"]*)"')) STORED;
  CREATE INDEX sessions_by_tenant ON ${schema}.sessions (tenant) WHERE tenant IS NOT NULL;
  CREATE TABLE ${schema}.usage (
    tenant text COLLATE "C" NOT NULL,
    day int NOT NULL,
    id text COLLATE "C" NOT NULL,
    tokens double precision NOT NULL,
    cost double precision NOT NULL,
    PRIMARY KEY (tenant, day, id)
  );

  -- Leases a session like take_lease, unless "maximum" other sessions of the tenant are leased. Then returns their number.
  CREATE FUNCTION ${schema}.take_tenant_lease(
    session text, new_holder_id text, new_holder text, ttl interval, tenant_name text, maximum bigint,
    OUT taken bigint, OUT present text, OUT running bigint
  ) LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('${schema} tenant ' || tenant_name, 0));
    SELECT count(*) INTO running FROM ${schema}.leases l JOIN ${schema}.sessions s ON s.id = l.session_id
    WHERE s.tenant = tenant_name AND s.parent_id IS NULL AND s.id <> session AND l.expires_at > clock_timestamp();
    IF running >= maximum THEN RETURN; END IF;
    running := NULL;
    SELECT t.taken, t.present INTO taken, present
    FROM ${schema}.take_lease(session, new_holder_id, new_holder, ttl, NULL) t;
  END $$;
  `,
  // Commits changes to several sessions like commit_changes. Then ends leases, takes leases like take_lease, and stores
  // file contents. First locks the sessions' rows in the order of their ids, so that two processes that write the same
  // sessions cannot deadlock.
  (schema) => `
  CREATE FUNCTION ${schema}.commit_shared(
    owners text[], counts bigint[], epochs bigint[], expected bigint[],
    owner int[], kinds text[], ids text[], places text[], worktrees text[], times double precision[],
    states text[], datas text[], channel text, ended text[], ended_epochs bigint[],
    taken_sessions text[], holder_ids text[], holders text[], ttl interval,
    hashes text[], contents bytea[],
    OUT firsts bigint[], OUT taken bigint[], OUT present text[]
  ) LANGUAGE plpgsql AS $$
  DECLARE
    lease record;
  BEGIN
    PERFORM FROM ${schema}.sequences
    WHERE session_id = ANY (owners || ended || taken_sessions) ORDER BY session_id FOR UPDATE;
    firsts := ${schema}.commit_changes(
      owners, counts, epochs, expected, owner, kinds, ids, places, worktrees, times, states, datas, channel);
    FOR i IN 1 .. coalesce(cardinality(ended), 0) LOOP
      PERFORM ${schema}.end_lease(ended[i], ended_epochs[i]);
      -- The mark of a lease: see postgres-requests.ts.
      PERFORM pg_notify(channel, json_build_object(ended[i], -1)::text);
    END LOOP;
    FOR i IN 1 .. coalesce(cardinality(taken_sessions), 0) LOOP
      SELECT * INTO lease FROM ${schema}.take_lease(taken_sessions[i], holder_ids[i], holders[i], ttl, NULL);
      taken := taken || lease.taken;
      present := present || lease.present;
    END LOOP;
    IF cardinality(hashes) > 0 THEN
      INSERT INTO ${schema}.contents (hash, size, used, data)
      SELECT DISTINCT ON (c.hash) c.hash, octet_length(c.data), now(), c.data
      FROM unnest(hashes, contents) AS c (hash, data) ORDER BY c.hash
      ON CONFLICT (hash) DO UPDATE SET used = excluded.used;
    END IF;
  END $$;
  `,
]
