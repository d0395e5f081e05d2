-- The protocol: each function is called by one statement. Decision and change are one transaction under READ COMMITTED.
--
-- Every function that changes something first locks the row of its data set, and the lock ends with the statement. So the changes of one
-- data set have one order, and each sees the results of all changes before it (a VOLATILE function takes a new snapshot for every statement
-- inside it). No lock is ever held while a client works.
--
-- Outcomes are words that the caller translates; other failures are exceptions: LW001 the server does not make commits durable, LW002 no such
-- ledger, LW003 the anchors are not those of the ledger, LW009 a rule of a table.
--
-- Others may create functions, operators and types in this database. None of them is ever used here: every function gets the search path
-- "pg_catalog, pg_temp" when it is installed (../routines.py); the procedures that commit cannot have one, and name the schema of everything
-- they use, as does every statement of a client; and an SQL body of one expression is bound to what it names when it is made.

-- Injective: a list of texts and NULLs as JSON, which Python writes in the same way. One expression, which the caller's plan takes in.
CREATE FUNCTION lapwing.digest(VARIADIC fields text[]) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.array_to_json(fields)::text, 'UTF8')), 'hex');

-- The fields of a digest, with those of later versions if any is set: without them the digest is the same as before.
CREATE FUNCTION lapwing.with_later(p_fields text[], VARIADIC p_later text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN pg_catalog.num_nonnulls(VARIADIC p_later) = 0 THEN p_fields ELSE pg_catalog.array_cat(p_fields, p_later) END;

-- The fields that later versions added to a charge, in order: without a record, its digest is the same as before.
CREATE FUNCTION lapwing.later_of_charge(p_pure text, p_purchase text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN p_purchase IS NULL THEN ARRAY[p_pure] ELSE ARRAY[p_pure, p_purchase] END;

-- The same of an entry: without blocks, its digest is the same as before.
CREATE FUNCTION lapwing.later_of_entry(p_pure text, p_blocks text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN p_blocks IS NULL THEN ARRAY[p_pure] ELSE ARRAY[p_pure, p_blocks] END;

-- The rule of admission: of two sums over the same charges, one must be within its total. A loss total of NULL is no limit; a pure sum of NULL
-- is within no total, and no sum is within a pure total of NULL.
CREATE FUNCTION lapwing.exceeds(p_loss numeric, p_pure numeric, p_loss_total numeric, p_pure_total numeric) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (p_loss > p_loss_total) IS TRUE AND (p_pure <= p_pure_total) IS NOT TRUE;

-- Checked in the statement itself, because behind a pooler the settings of the next statement may be another session's. The procedures
-- at the end wait for the disk after they release the lock; only they announce a flush, for this transaction only: an earlier setting of a
-- session or a role does not count.
CREATE FUNCTION lapwing.require_durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
            AND (current_setting('lapwing.flush_follows', true) = pg_current_xact_id_if_assigned()::text) IS NOT TRUE)
        OR current_setting('fsync') <> 'on'
        OR current_setting('full_page_writes') <> 'on' OR current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the server would not keep what it commits' USING ERRCODE = 'LW001';
    END IF;
END $$;

CREATE FUNCTION lapwing.locked(p_ledger_id text) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
DECLARE ds lapwing.data_set;
BEGIN
    PERFORM lapwing.require_durable();
    SELECT * INTO ds FROM lapwing.data_set WHERE ledger_id = p_ledger_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no such ledger' USING ERRCODE = 'LW002';
    END IF;
    RETURN ds;
END $$;

-- The day and the entry of a charge have the same time, so that the day can be derived from the entry.
CREATE FUNCTION lapwing.stamp(p_moment timestamptz) RETURNS text LANGUAGE sql STABLE
    RETURN pg_catalog.to_char(p_moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"');

-- Writes an entry (only lapwing.charge_all and lapwing.settle_all write entries too). Returns the new head; the caller, who holds the lock, stores
-- it with the number in the same transaction.
CREATE FUNCTION lapwing.chain(p_ledger_id text, p_entry_id bigint, p_head text, p_kind text, p_analyst text, p_charge_id bigint, p_loss numeric,
    p_delta numeric, p_pure numeric, p_detail text, p_evidence text, p_moment timestamptz, p_blocks text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    stamp text := lapwing.stamp(p_moment);
    h text := lapwing.digest(VARIADIC lapwing.with_later(ARRAY[p_head, p_entry_id::text, stamp, p_kind, p_analyst, p_charge_id::text,
        p_loss::text, p_delta::text, p_detail, p_evidence], VARIADIC lapwing.later_of_entry(p_pure::text, p_blocks)));
BEGIN
    INSERT INTO lapwing.entry (ledger_id, entry_id, at, kind, analyst, charge_id, loss, delta, pure, detail, evidence, chained, blocks)
        VALUES (p_ledger_id, p_entry_id, stamp, p_kind, p_analyst, p_charge_id, p_loss, p_delta, p_pure, p_detail, p_evidence, h, p_blocks);
    RETURN h;
END $$;

-- One entry together with the state it leads to: ds (which may differ from the stored row in what follows "SET") plus the amounts. A cost
-- of zero has no pure amount, but does not count as missing one.
CREATE FUNCTION lapwing.append(ds lapwing.data_set, p_kind text, p_analyst text, p_charge_id bigint, p_loss numeric, p_delta numeric,
    p_detail text, p_evidence text, p_pure numeric DEFAULT NULL, p_blocks text DEFAULT NULL) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
DECLARE
    h text := lapwing.chain(ds.ledger_id, ds.entries + 1, ds.head, p_kind, p_analyst, p_charge_id, p_loss, p_delta, p_pure, p_detail,
        p_evidence, clock_timestamp(), p_blocks);
BEGIN
    UPDATE lapwing.data_set SET
        loss_spent = loss_spent + p_loss, delta_spent = delta_spent + p_delta, entries = ds.entries + 1, head = h,
        pure_spent = pure_spent + CASE WHEN p_loss = 0 AND p_delta = 0 THEN coalesce(p_pure, 0) ELSE p_pure END,
        superseded = ds.superseded, closed = ds.closed, anchors = ds.anchors, blocks_every = ds.blocks_every,
        person_budget = ds.person_budget,
        budget = ds.budget, loss_total = ds.loss_total, delta_total = ds.delta_total, pure_total = ds.pure_total,
        ceiling = ds.ceiling, loss_ceiling = ds.loss_ceiling, delta_ceiling = ds.delta_ceiling, pure_ceiling = ds.pure_ceiling,
        statement_loss_max = ds.statement_loss_max, day_loss_max = ds.day_loss_max,
        statement_pure_max = ds.statement_pure_max, day_pure_max = ds.day_pure_max,
        answers_shared = ds.answers_shared, lost_workers_max = ds.lost_workers_max, lost_workers_seconds = ds.lost_workers_seconds
        WHERE ledger_id = ds.ledger_id
        RETURNING * INTO ds;
    RETURN ds;
END $$;

-- Forfeit all open reservations of a worker, and end it. A lost worker with open reservations counts towards closing, until the
-- owner re-opens.
CREATE FUNCTION lapwing.end_worker(ds lapwing.data_set, p_epoch text, p_how text, p_detail text) RETURNS lapwing.data_set
LANGUAGE plpgsql AS $$
DECLARE
    c record;
    n integer := 0;
    lost bigint;
BEGIN
    FOR c IN SELECT charge_id, analyst FROM lapwing.charge
        WHERE ledger_id = ds.ledger_id AND epoch = p_epoch AND state = 'reserved' ORDER BY charge_id LOOP
        UPDATE lapwing.charge SET state = 'forfeited' WHERE ledger_id = ds.ledger_id AND charge_id = c.charge_id;
        ds := lapwing.append(ds, 'forfeit', c.analyst, c.charge_id, 0, 0, p_detail, '');
        n := n + 1;
    END LOOP;
    UPDATE lapwing.worker SET ended_at = clock_timestamp(), ended_how = p_how, forfeited = n WHERE epoch = p_epoch AND ended_at IS NULL;
    IF p_how = 'lost' AND n > 0 AND NOT ds.closed THEN
        SELECT count(*) INTO lost FROM lapwing.worker WHERE ledger_id = ds.ledger_id AND ended_how = 'lost' AND forfeited > 0
            AND ended_at > clock_timestamp() - make_interval(secs => ds.lost_workers_seconds)
            AND ended_at > coalesce((SELECT max(at)::timestamptz FROM lapwing.entry WHERE ledger_id = ds.ledger_id AND kind = 'reopen'), '-infinity');
        IF lost >= ds.lost_workers_max THEN
            ds.closed := true;
            ds := lapwing.append(ds, 'close', '', NULL, 0, 0, 'too many lost workers', '');
        END IF;
    END IF;
    RETURN ds;
END $$;

-- A worker may be served only after the reservations of dead workers are forfeited (p_dead: epochs that have certainly ended), and only if it
-- writes to every anchor of the ledger (p_anchors, in order): otherwise a reset could remain undetected by the other anchors.
CREATE FUNCTION lapwing.register_worker(p_ledger_id text, p_epoch text, p_host text, p_boot text, p_namespace text, p_pid bigint,
    p_started text, p_lease_seconds integer, p_dead text[], p_anchors text[]) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    w record;
BEGIN
    IF ds.anchors = '{}' OR ds.anchors <> p_anchors THEN
        RAISE EXCEPTION 'the anchors are not those of the ledger' USING ERRCODE = 'LW003';
    END IF;
    FOR w IN SELECT epoch FROM lapwing.worker WHERE ledger_id = p_ledger_id AND ended_at IS NULL AND epoch <> p_epoch
        AND (lease_until < clock_timestamp() OR epoch = ANY (p_dead)) ORDER BY epoch LOOP
        ds := lapwing.end_worker(ds, w.epoch, 'lost', 'the worker that reserved it is gone');
    END LOOP;
    INSERT INTO lapwing.worker (epoch, ledger_id, host, boot, namespace, pid, started, lease_until, anchors)
        VALUES (p_epoch, p_ledger_id, p_host, p_boot, p_namespace, p_pid, p_started,
            clock_timestamp() + make_interval(secs => p_lease_seconds), p_anchors)
        ON CONFLICT (epoch) DO NOTHING;  -- the same statement, sent again because its reply was lost
    RETURN ds;
END $$;

-- Returns whether the worker is still registered.
CREATE FUNCTION lapwing.renew_worker(p_epoch text, p_lease_seconds integer) RETURNS boolean LANGUAGE sql AS $$
    WITH renewed AS (
        UPDATE lapwing.worker SET lease_until = clock_timestamp() + make_interval(secs => p_lease_seconds)
        WHERE epoch = p_epoch AND ended_at IS NULL RETURNING 1)
    SELECT EXISTS (SELECT FROM renewed)
$$;

CREATE FUNCTION lapwing.disconnect_worker(p_ledger_id text, p_epoch text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    ds := lapwing.end_worker(ds, p_epoch, 'disconnected', 'the process ended its use of the ledger');
END $$;

CREATE FUNCTION lapwing.state_texts(ds lapwing.data_set) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ARRAY[ds.ledger_id, ds.source_id, ds.entries::text, ds.head, ds.budget, ds.ceiling, ds.loss_spent::text, ds.delta_spent::text,
        ds.closed::text, ds.pure_spent::text, ds.blocks_every, ds.person_budget, ds.blocks_first::text, ds.blocks_last::text,
        ds.blocks_loss::text, ds.blocks_delta::text, ds.blocks_pure::text, ds.persons_loss::text, ds.persons_delta::text,
        ds.persons_pure::text];
END $$;

-- The outcome for a key that was used before. The state is returned only with a permit, because nothing else needs it.
CREATE FUNCTION lapwing.replay(ds lapwing.data_set, p_charge_id bigint, p_epoch text, p_nonce text, p_digest text,
    OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) LANGUAGE plpgsql AS $$
DECLARE
    c lapwing.charge;
    w lapwing.worker;
BEGIN
    SELECT * INTO c FROM lapwing.charge WHERE ledger_id = ds.ledger_id AND charge_id = p_charge_id;
    o_charge_id := c.charge_id;
    IF c.digest <> p_digest THEN
        outcome := 'mismatch';
    ELSIF c.state = 'committed' THEN
        outcome := 'stored'; o_payload := c.payload; o_payload_digest := c.payload_digest;
    ELSIF c.state = 'forfeited' THEN
        outcome := 'forfeited';
    ELSIF c.epoch = p_epoch AND c.nonce = p_nonce THEN
        outcome := 'permit';  -- this very call, sent again because its reply was lost: nothing was read under it yet
        o_state := lapwing.state_texts(ds);
    ELSE
        SELECT * INTO w FROM lapwing.worker WHERE epoch = c.epoch;
        IF w.ended_at IS NULL AND w.lease_until < clock_timestamp() THEN
            ds := lapwing.end_worker(ds, c.epoch, 'lost', 'the worker that reserved it is gone');
            outcome := 'forfeited';
        ELSE
            outcome := 'in-progress';
        END IF;
    END IF;
END $$;

CREATE FUNCTION lapwing.reserve(
    p_ledger_id text, p_epoch text, p_nonce text, p_analyst text, p_request_id text, p_digest text, p_version bigint, p_summary text,
    p_loss numeric, p_delta numeric, p_pure numeric, p_anchor_entries bigint, p_anchor_head text, p_purchase text,
    OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[], p_blocks text DEFAULT NULL
) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    moment timestamptz := clock_timestamp();
    today date := (moment AT TIME ZONE 'UTC')::date;
    seen record;
    day_loss_of_all numeric;
    day_loss_of_analyst numeric;
    day_pure_of_all numeric;
    day_pure_of_analyst numeric;
    standing record;
    evidence text;
BEGIN
    -- Stored as a digest, so that a reader of the tables cannot settle the reservations of others.
    p_nonce := lapwing.digest(p_nonce);
    -- The chain must have the entry that the caller knows; a caller that knows none passes 0.
    IF p_anchor_entries <> 0 AND p_anchor_head <> ds.head THEN
        PERFORM FROM lapwing.entry WHERE ledger_id = p_ledger_id AND entry_id = p_anchor_entries AND chained = p_anchor_head;
        IF NOT FOUND THEN
            outcome := 'rolled-back'; RETURN;
        END IF;
    END IF;
    -- Everything else that the decision depends on, in one query after the lock.
    SELECT w.epoch, a.analyst, a.group_name, a.loss_total, a.delta_total, a.loss_spent, a.delta_spent, a.day_loss_max, a.day, a.day_loss,
            a.pure_total, a.pure_spent, a.day_pure_max, a.day_pure,
            g.loss_total AS group_loss_total, g.delta_total AS group_delta_total, g.pure_total AS group_pure_total,
            g.loss_spent AS group_loss_spent, g.delta_spent AS group_delta_spent, g.pure_spent AS group_pure_spent, c.charge_id
        INTO seen
        FROM (SELECT) AS always_one_row
        LEFT JOIN lapwing.worker w ON w.epoch = p_epoch AND w.ledger_id = p_ledger_id AND w.ended_at IS NULL AND w.anchors = ds.anchors
        LEFT JOIN lapwing.analyst a ON a.ledger_id = p_ledger_id AND a.analyst = p_analyst AND NOT a.suspended
        LEFT JOIN lapwing.analyst_group g ON g.ledger_id = p_ledger_id AND g.group_name = a.group_name
        LEFT JOIN lapwing.charge c ON c.ledger_id = p_ledger_id AND c.analyst = p_analyst AND c.request_id = p_request_id;
    IF ds.superseded THEN
        outcome := 'superseded'; RETURN;
    ELSIF seen.epoch IS NULL THEN
        outcome := 'worker-ended'; RETURN;
    ELSIF ds.closed THEN
        outcome := 'closed'; RETURN;
    ELSIF seen.analyst IS NULL THEN
        outcome := 'analyst-unknown'; RETURN;
    ELSIF seen.charge_id IS NOT NULL THEN
        SELECT r.* INTO outcome, o_charge_id, o_payload, o_payload_digest, o_state
            FROM lapwing.replay(ds, seen.charge_id, p_epoch, p_nonce, p_digest) AS r;
        RETURN;
    END IF;
    -- The day only moves forwards: setting the clock back does not give the same day twice.
    day_loss_of_all := p_loss + CASE WHEN ds.day >= today THEN ds.day_loss ELSE 0 END;
    day_loss_of_analyst := p_loss + CASE WHEN seen.day >= today THEN seen.day_loss ELSE 0 END;
    day_pure_of_all := p_pure + CASE WHEN ds.day >= today THEN ds.day_pure ELSE 0 END;
    day_pure_of_analyst := p_pure + CASE WHEN seen.day >= today THEN seen.day_pure ELSE 0 END;
    -- A comparison with a limit of NULL is not true: NULL is no limit.
    IF lapwing.exceeds(p_loss, p_pure, ds.statement_loss_max, ds.statement_pure_max) THEN
        outcome := 'statement-limit'; RETURN;
    ELSIF lapwing.exceeds(day_loss_of_all, day_pure_of_all, ds.day_loss_max, ds.day_pure_max)
        OR lapwing.exceeds(day_loss_of_analyst, day_pure_of_analyst, seen.day_loss_max, seen.day_pure_max) THEN
        outcome := 'day-limit'; RETURN;
    ELSIF lapwing.exceeds(seen.loss_spent + p_loss, seen.pure_spent + p_pure, seen.loss_total, seen.pure_total)
        OR seen.delta_spent + p_delta > seen.delta_total THEN
        outcome := 'analyst-budget'; RETURN;
    ELSIF lapwing.exceeds(seen.group_loss_spent + p_loss, seen.group_pure_spent + p_pure, seen.group_loss_total, seen.group_pure_total)
        OR seen.group_delta_spent + p_delta > seen.group_delta_total THEN
        outcome := 'group-budget'; RETURN;
    ELSIF ds.blocks_every IS NULL AND p_blocks IS NOT NULL THEN
        outcome := 'blocks-undeclared'; RETURN;
    ELSIF ds.blocks_every IS NOT NULL AND p_blocks IS NULL THEN
        outcome := 'blocks-missing'; RETURN;  -- certified for a version from before there were blocks: it may read the rows of all of them
    ELSIF ds.blocks_every IS NOT NULL THEN
        SELECT r.* INTO standing FROM lapwing.charge_blocks(ds, p_blocks, p_loss, p_delta, p_pure) AS r;
        IF standing.outcome IS NOT NULL THEN
            outcome := standing.outcome; RETURN;
        END IF;
    ELSIF lapwing.exceeds(ds.loss_spent + p_loss, ds.pure_spent + p_pure, ds.loss_total, ds.pure_total)
        OR ds.delta_spent + p_delta > ds.delta_total THEN
        outcome := 'budget'; RETURN;
    END IF;
    o_charge_id := ds.charges + 1;
    INSERT INTO lapwing.charge (ledger_id, charge_id, analyst, group_name, request_id, digest, version, summary, loss, delta, pure, purchase, epoch,
            nonce)
        VALUES (p_ledger_id, o_charge_id, p_analyst, seen.group_name, p_request_id, p_digest, p_version, p_summary, p_loss, p_delta, p_pure,
            p_purchase, p_epoch, p_nonce);
    UPDATE lapwing.analyst SET loss_spent = loss_spent + p_loss, delta_spent = delta_spent + p_delta, pure_spent = pure_spent + p_pure,
            day = greatest(day, today), day_loss = day_loss_of_analyst, day_pure = day_pure_of_analyst
        WHERE ledger_id = p_ledger_id AND analyst = p_analyst;
    IF seen.group_name IS NOT NULL THEN
        UPDATE lapwing.analyst_group SET loss_spent = loss_spent + p_loss, delta_spent = delta_spent + p_delta, pure_spent = pure_spent + p_pure
            WHERE ledger_id = p_ledger_id AND group_name = seen.group_name;
    END IF;
    evidence := lapwing.digest(VARIADIC lapwing.with_later(ARRAY[o_charge_id::text, p_analyst, seen.group_name, p_request_id, p_digest,
        p_version::text, '', p_summary, p_loss::text, p_delta::text, p_epoch, p_nonce],
        VARIADIC lapwing.later_of_charge(p_pure::text, p_purchase)));
    IF ds.blocks_every IS NOT NULL THEN  -- from here on, the cost is the part of the tables without time
        p_loss := standing.loss; p_delta := standing.delta; p_pure := standing.pure;
    END IF;
    ds.head := lapwing.chain(p_ledger_id, ds.entries + 1, ds.head, 'reserve', p_analyst, o_charge_id, p_loss, p_delta,
        CASE WHEN p_loss > 0 OR p_delta > 0 THEN p_pure END, p_summary, evidence, moment, p_blocks);
    UPDATE lapwing.data_set SET loss_spent = loss_spent + p_loss, delta_spent = delta_spent + p_delta, pure_spent = pure_spent + p_pure,
            entries = entries + 1, charges = charges + 1, head = ds.head, day = greatest(day, today), day_loss = day_loss_of_all,
            day_pure = day_pure_of_all, anchored = greatest(anchored, p_anchor_entries)
        WHERE ledger_id = p_ledger_id
        RETURNING * INTO ds;
    outcome := 'permit';
    o_state := lapwing.state_texts(ds);
END $$;

-- The outcome of a new request at this cost: it is reserved and undone, so that the rules are not repeated here.
CREATE FUNCTION lapwing.would_reserve(p_ledger_id text, p_epoch text, p_analyst text, p_loss numeric, p_delta numeric, p_pure numeric,
    p_blocks text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE said text;
BEGIN
    BEGIN
        SELECT r.outcome INTO said FROM lapwing.reserve(p_ledger_id, p_epoch, '', p_analyst, 'would ' || gen_random_uuid(), '', 0, '', p_loss,
            p_delta, p_pure, 0, '', NULL, p_blocks) AS r;
        RAISE EXCEPTION USING ERRCODE = 'LW010';
    EXCEPTION WHEN SQLSTATE 'LW010' THEN
        RETURN said;
    END;
END $$;

-- A repeated call with the same nonce and bytes changes nothing and returns 'done', so that a caller who lost the reply can find out.
CREATE FUNCTION lapwing.commit(
    p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_digest text, p_loss numeric, p_delta numeric, p_pure numeric,
    p_payload bytea, OUT outcome text, OUT o_state text[]
) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    hashed text := encode(sha256(p_payload), 'hex');
    c record;
BEGIN
    p_nonce := lapwing.digest(p_nonce);
    outcome := 'not-open';
    SELECT o.analyst, o.state, o.payload_digest, w.epoch AS worker INTO c
        FROM lapwing.charge AS o LEFT JOIN lapwing.worker AS w ON w.epoch = p_epoch AND w.ended_at IS NULL
        WHERE o.ledger_id = p_ledger_id AND o.charge_id = p_charge_id AND o.epoch = p_epoch AND o.nonce = p_nonce
            AND o.digest = p_digest AND o.loss = p_loss AND o.delta = p_delta AND o.pure IS NOT DISTINCT FROM p_pure;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF c.state = 'committed' AND c.payload_digest = hashed THEN
        outcome := 'done'; o_state := lapwing.state_texts(ds); RETURN;
    END IF;
    IF c.worker IS NULL OR c.state <> 'reserved' OR ds.superseded THEN
        RETURN;
    END IF;
    UPDATE lapwing.charge SET state = 'committed', payload = p_payload, payload_digest = hashed
        WHERE ledger_id = p_ledger_id AND charge_id = p_charge_id;
    ds.head := lapwing.chain(p_ledger_id, ds.entries + 1, ds.head, 'commit', c.analyst, p_charge_id, 0, 0, NULL, '', hashed,
        clock_timestamp());
    UPDATE lapwing.data_set SET entries = entries + 1, head = ds.head WHERE ledger_id = p_ledger_id RETURNING * INTO ds;
    outcome := 'done';
    o_state := lapwing.state_texts(ds);
END $$;

CREATE FUNCTION lapwing.forfeit(p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_incident boolean,
    OUT outcome text, OUT state lapwing.data_set) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    c lapwing.charge;
BEGIN
    p_nonce := lapwing.digest(p_nonce);
    SELECT * INTO c FROM lapwing.charge WHERE ledger_id = p_ledger_id AND charge_id = p_charge_id AND epoch = p_epoch AND nonce = p_nonce;
    IF FOUND AND c.state = 'reserved' THEN
        UPDATE lapwing.charge SET state = 'forfeited' WHERE ledger_id = p_ledger_id AND charge_id = p_charge_id;
        ds := lapwing.append(ds, 'forfeit', c.analyst, c.charge_id, 0, 0, CASE WHEN p_incident THEN 'incident' ELSE 'no answer' END, '');
        outcome := 'done';
    ELSE
        outcome := 'not-open';
    END IF;
    IF p_incident AND NOT ds.closed THEN
        ds.closed := true;
        ds := lapwing.append(ds, 'close', '', NULL, 0, 0, 'incident', '');
    END IF;
    state := ds;
END $$;

-- The result may have been committed a moment ago and not be on disk yet: the caller waits for that before showing it to anyone.
-- p_analyst NULL: the owner's own view. Else only to an analyst who may ask, and others' answers only where they are shared. Of several, what
-- this request of the analyst paid for itself (p_request_id, or a part of it) comes first; while that is still reserved, nothing is found. Then
-- the one that was committed first: the same answer is returned every time, so a plan that depends on it stays the same.
CREATE FUNCTION lapwing.find_answer(p_ledger_id text, p_digest text, p_analyst text, p_request_id text,
    OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN c.state = 'committed' THEN c.charge_id END, c.payload, c.payload_digest
    FROM lapwing.charge c JOIN lapwing.data_set d USING (ledger_id) CROSS JOIN LATERAL (SELECT (c.analyst = p_analyst
        AND (c.request_id = p_request_id OR starts_with(c.request_id, p_request_id || '/'))) IS TRUE AS own) AS whose
    WHERE c.ledger_id = p_ledger_id AND c.digest = p_digest AND (c.state = 'committed' OR (c.state = 'reserved' AND whose.own))
        AND (p_analyst IS NULL OR (NOT d.closed AND (d.answers_shared OR c.analyst = p_analyst) AND EXISTS (
            SELECT FROM lapwing.analyst a WHERE a.ledger_id = p_ledger_id AND a.analyst = p_analyst AND NOT a.suspended)))
    ORDER BY whose.own DESC, (SELECT e.entry_id FROM lapwing.entry e
        WHERE e.ledger_id = c.ledger_id AND e.charge_id = c.charge_id AND e.kind = 'commit') NULLS FIRST LIMIT 1
$$;

-- A transaction that has to wait for the disk holds its locks while it waits, so the changes of one data set would share no wait. The two
-- procedures below therefore change and commit without waiting, which frees the lock, and then wait once, in a second transaction: its
-- commit record comes after that of the first in the log, so when it is on the disk (and on the standbys that count) the first is too. The
-- caller hears nothing before that. If the server stops in between, the caller has no reply, and no permit.
CREATE PROCEDURE lapwing.wait_for_disk() LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM pg_logical_emit_message(true, 'lapwing', '');
END $$;

CREATE PROCEDURE lapwing.reserve_durably(
    p_ledger_id text, p_epoch text, p_nonce text, p_analyst text, p_request_id text, p_digest text, p_version bigint, p_summary text,
    p_loss numeric, p_delta numeric, p_pure numeric, p_anchor_entries bigint, p_anchor_head text, p_purchase text,
    OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[], p_blocks text DEFAULT NULL
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true),
        pg_catalog.set_config('lapwing.flush_follows', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    SELECT r.* INTO outcome, o_charge_id, o_payload, o_payload_digest, o_state
        FROM lapwing.reserve(p_ledger_id, p_epoch, p_nonce, p_analyst, p_request_id, p_digest, p_version, p_summary, p_loss, p_delta, p_pure,
            p_anchor_entries, p_anchor_head, p_purchase, p_blocks) AS r;
    COMMIT;  -- both settings end here
    CALL lapwing.wait_for_disk();
END $$;

CREATE PROCEDURE lapwing.commit_durably(
    p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_digest text, p_loss numeric, p_delta numeric, p_pure numeric,
    p_payload bytea, OUT outcome text, OUT o_state text[]
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true),
        pg_catalog.set_config('lapwing.flush_follows', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    SELECT r.* INTO outcome, o_state
        FROM lapwing.commit(p_ledger_id, p_epoch, p_nonce, p_charge_id, p_digest, p_loss, p_delta, p_pure, p_payload) AS r;
    COMMIT;
    CALL lapwing.wait_for_disk();
END $$;
