SET check_function_bodies = off;
CREATE SCHEMA lapwing;
ALTER SCHEMA lapwing OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.amount AS numeric(40,0)
	CONSTRAINT amount_check CHECK (((VALUE >= (0)::numeric) AND (VALUE < '10000000000000000000000000000000000000000'::numeric)));
ALTER DOMAIN lapwing.amount OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.block AS text
	CONSTRAINT block_check CHECK ((VALUE = ''::text));
ALTER DOMAIN lapwing.block OWNER TO lapwing_owner;
CREATE TYPE lapwing.charge_state AS ENUM (
    'reserved',
    'committed',
    'forfeited'
);
ALTER TYPE lapwing.charge_state OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.positive_amount AS numeric(40,0)
	CONSTRAINT positive_amount_check CHECK (((VALUE > (0)::numeric) AND (VALUE < '10000000000000000000000000000000000000000'::numeric)));
ALTER DOMAIN lapwing.positive_amount OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.positive_integer AS integer
	CONSTRAINT positive_integer_check CHECK ((VALUE >= 1));
ALTER DOMAIN lapwing.positive_integer OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.version AS bigint
	CONSTRAINT version_check CHECK ((VALUE >= 0));
ALTER DOMAIN lapwing.version OWNER TO lapwing_owner;
CREATE TABLE lapwing.data_set (
    ledger_id text NOT NULL,
    source_id text NOT NULL,
    superseded boolean DEFAULT false NOT NULL,
    budget text NOT NULL,
    ceiling text NOT NULL,
    loss_spent lapwing.amount DEFAULT 0 NOT NULL,
    delta_spent lapwing.amount DEFAULT 0 NOT NULL,
    loss_total lapwing.amount NOT NULL,
    delta_total lapwing.amount NOT NULL,
    loss_ceiling lapwing.amount NOT NULL,
    delta_ceiling lapwing.amount NOT NULL,
    closed boolean DEFAULT false NOT NULL,
    entries bigint DEFAULT 0 NOT NULL,
    charges bigint DEFAULT 0 NOT NULL,
    head text NOT NULL,
    statement_loss_max lapwing.amount,
    day_loss_max lapwing.amount,
    day date,
    day_loss numeric DEFAULT 0 NOT NULL,
    answers_shared boolean DEFAULT true NOT NULL,
    lost_workers_max lapwing.positive_integer DEFAULT 3 NOT NULL,
    lost_workers_seconds lapwing.positive_integer DEFAULT 3600 NOT NULL,
    CONSTRAINT data_set_check CHECK ((((loss_spent)::numeric <= (loss_total)::numeric) AND ((loss_total)::numeric <= (loss_ceiling)::numeric))),
    CONSTRAINT data_set_check1 CHECK ((((delta_spent)::numeric <= (delta_total)::numeric) AND ((delta_total)::numeric <= (delta_ceiling)::numeric)))
)
WITH (fillfactor='50');
ALTER TABLE lapwing.data_set OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.accept_override(p_ledger_id text, p_detail text, p_fingerprint text, p_behind boolean, p_loss_lost numeric, p_delta_lost numeric, p_budget text, p_ceiling text, p_closed boolean) RETURNS lapwing.data_set
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    loss_ceiling numeric := (p_ceiling::jsonb ->> 'loss_total')::numeric;
    loss_total numeric := (p_budget::jsonb ->> 'loss_total')::numeric;
    too_much boolean;
BEGIN
    ds := lapwing.append(ds, 'override', '', NULL, 0, 0, p_detail, '');
    IF p_fingerprint IS NOT NULL THEN
        INSERT INTO lapwing.fingerprint VALUES (p_fingerprint, ds.source_id) ON CONFLICT DO NOTHING;
    END IF;
    IF p_behind THEN
        IF loss_ceiling >= ds.loss_ceiling AND loss_total >= ds.loss_spent THEN
            ds.budget := p_budget; ds.loss_total := loss_total; ds.delta_total := (p_budget::jsonb ->> 'delta_total')::numeric;
            ds.ceiling := p_ceiling; ds.loss_ceiling := loss_ceiling; ds.delta_ceiling := (p_ceiling::jsonb ->> 'delta_total')::numeric;
        END IF;
        too_much := ds.loss_spent + p_loss_lost > ds.loss_total OR ds.delta_spent + p_delta_lost > ds.delta_total;
        ds := lapwing.append(ds, 'restore', '', NULL, least(p_loss_lost, ds.loss_total - ds.loss_spent),
            least(p_delta_lost, ds.delta_total - ds.delta_spent),
            'charges made after the restored state' || CASE WHEN too_much THEN ': more than the budget has left' ELSE '' END,
            lapwing.budgets_evidence(ds.budget, ds.ceiling));
        IF (p_closed OR too_much) AND NOT ds.closed THEN
            ds.closed := true;
            ds := lapwing.append(ds, 'close', '', NULL, 0, 0,
                CASE WHEN too_much THEN 'more was spent than the budget has' ELSE 'closed before the ledger was restored' END, '');
        END IF;
    END IF;
    RETURN ds;
END $$;
ALTER FUNCTION lapwing.accept_override(p_ledger_id text, p_detail text, p_fingerprint text, p_behind boolean, p_loss_lost numeric, p_delta_lost numeric, p_budget text, p_ceiling text, p_closed boolean) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.all_fit(ds lapwing.data_set, p_epoch text, p_analysts text[], p_request_ids text[], p_losses numeric[], p_deltas numeric[], p_today date) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE fits boolean;
BEGIN
    -- A comparison with a limit that is NULL is not false: no limit.
    WITH asked AS (
        SELECT * FROM unnest(p_analysts, p_request_ids, p_losses, p_deltas) AS r (analyst, request_id, loss, delta)
    ), of_all AS (
        SELECT count(DISTINCT (analyst, request_id)) AS keys, min(loss) AS loss_min, min(delta) AS delta_min, max(loss) AS loss_max,
            sum(loss) AS loss, sum(delta) AS delta
        FROM asked
    ), of_analyst AS (
        SELECT a.group_name, count(*) AS requests, sum(asked.loss) AS loss, sum(asked.delta) AS delta,
            (a.loss_spent + sum(asked.loss) <= a.loss_total) IS NOT FALSE
                AND (a.delta_spent + sum(asked.delta) <= a.delta_total) IS NOT FALSE
                AND (CASE WHEN a.day >= p_today THEN a.day_loss ELSE 0 END + sum(asked.loss) <= a.day_loss_max) IS NOT FALSE AS fits
        FROM asked JOIN lapwing.analyst a ON a.ledger_id = ds.ledger_id AND a.analyst = asked.analyst AND NOT a.suspended
        GROUP BY a.ledger_id, a.analyst
    ), of_group AS (
        SELECT (g.loss_spent + sum(of_analyst.loss) <= g.loss_total) IS NOT FALSE
                AND (g.delta_spent + sum(of_analyst.delta) <= g.delta_total) IS NOT FALSE AS fits
        FROM of_analyst JOIN lapwing.analyst_group g ON g.ledger_id = ds.ledger_id AND g.group_name = of_analyst.group_name
        GROUP BY g.ledger_id, g.group_name
    )
    SELECT NOT ds.superseded AND NOT ds.closed
            AND EXISTS (SELECT FROM lapwing.worker WHERE epoch = p_epoch AND ledger_id = ds.ledger_id AND ended_at IS NULL)
            AND keys = cardinality(p_analysts) AND loss_min > 0 AND delta_min >= 0
            -- LATERAL with a LIMIT: one look into the index for each key. As a plain join it may be planned as one pass over all past charges.
            AND NOT EXISTS (SELECT FROM asked, LATERAL (SELECT FROM lapwing.charge c
                WHERE c.ledger_id = ds.ledger_id AND c.analyst = asked.analyst AND c.request_id = asked.request_id LIMIT 1) AS used)
            AND (loss_max <= ds.statement_loss_max) IS NOT FALSE
            AND (CASE WHEN ds.day >= p_today THEN ds.day_loss ELSE 0 END + loss <= ds.day_loss_max) IS NOT FALSE
            AND (SELECT sum(requests) = cardinality(p_analysts) AND bool_and(of_analyst.fits) FROM of_analyst)
            AND (SELECT bool_and(of_group.fits) FROM of_group) IS NOT FALSE
            AND ds.loss_spent + loss <= ds.loss_total AND ds.delta_spent + delta <= ds.delta_total
        INTO fits
        FROM of_all;
    RETURN fits IS TRUE;
END $$;
ALTER FUNCTION lapwing.all_fit(ds lapwing.data_set, p_epoch text, p_analysts text[], p_request_ids text[], p_losses numeric[], p_deltas numeric[], p_today date) OWNER TO lapwing_owner;
CREATE TABLE lapwing.analyst (
    ledger_id text NOT NULL,
    analyst text NOT NULL,
    group_name text,
    suspended boolean DEFAULT false NOT NULL,
    loss_total lapwing.amount,
    delta_total lapwing.amount,
    loss_spent lapwing.amount DEFAULT 0 NOT NULL,
    delta_spent lapwing.amount DEFAULT 0 NOT NULL,
    day_loss_max lapwing.amount,
    day date,
    day_loss numeric DEFAULT 0 NOT NULL,
    CONSTRAINT analyst_check CHECK (((loss_spent)::numeric <= (loss_total)::numeric)),
    CONSTRAINT analyst_check1 CHECK (((delta_spent)::numeric <= (delta_total)::numeric))
)
WITH (fillfactor='70');
ALTER TABLE lapwing.analyst OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.analyst_evidence(a lapwing.analyst) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT 'analyst ' || a.analyst || ' ' || lapwing.digest(a.group_name, a.suspended::text, a.loss_total::text, a.delta_total::text,
        a.day_loss_max::text)
$$;
ALTER FUNCTION lapwing.analyst_evidence(a lapwing.analyst) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.append(ds lapwing.data_set, p_kind text, p_analyst text, p_charge_id bigint, p_loss numeric, p_delta numeric, p_detail text, p_evidence text) RETURNS lapwing.data_set
    LANGUAGE plpgsql
    AS $$
DECLARE
    h text := lapwing.chain(ds.ledger_id, ds.entries + 1, ds.head, p_kind, p_analyst, p_charge_id, p_loss, p_delta, p_detail, p_evidence);
BEGIN
    UPDATE lapwing.data_set SET
        loss_spent = loss_spent + p_loss, delta_spent = delta_spent + p_delta, entries = ds.entries + 1, head = h,
        superseded = ds.superseded, closed = ds.closed,
        budget = ds.budget, loss_total = ds.loss_total, delta_total = ds.delta_total,
        ceiling = ds.ceiling, loss_ceiling = ds.loss_ceiling, delta_ceiling = ds.delta_ceiling,
        statement_loss_max = ds.statement_loss_max, day_loss_max = ds.day_loss_max,
        answers_shared = ds.answers_shared, lost_workers_max = ds.lost_workers_max, lost_workers_seconds = ds.lost_workers_seconds
        WHERE ledger_id = ds.ledger_id
        RETURNING * INTO ds;
    RETURN ds;
END $$;
ALTER FUNCTION lapwing.append(ds lapwing.data_set, p_kind text, p_analyst text, p_charge_id bigint, p_loss numeric, p_delta numeric, p_detail text, p_evidence text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.apply_budget(ds lapwing.data_set, p_budget text, p_detail text) RETURNS lapwing.data_set
    LANGUAGE plpgsql
    AS $$
BEGIN
    ds.budget := p_budget;
    ds.loss_total := (p_budget::jsonb ->> 'loss_total')::numeric;
    ds.delta_total := (p_budget::jsonb ->> 'delta_total')::numeric;
    RETURN lapwing.append(ds, 'budget', '', NULL, 0, 0, p_detail, lapwing.budgets_evidence(ds.budget, ds.ceiling));
END $$;
ALTER FUNCTION lapwing.apply_budget(ds lapwing.data_set, p_budget text, p_detail text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.budget_outcome(ds lapwing.data_set, p_budget text, p_second boolean) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $$
DECLARE
    to_loss numeric := (p_budget::jsonb ->> 'loss_total')::numeric;
    to_delta numeric := (p_budget::jsonb ->> 'delta_total')::numeric;
BEGIN
    IF to_loss > ds.loss_ceiling OR to_delta > ds.delta_ceiling THEN
        RETURN 'above-ceiling';
    ELSIF to_loss < ds.loss_spent OR to_delta < ds.delta_spent THEN
        RETURN 'below-spent';
    ELSIF (to_loss > ds.loss_total OR to_delta > ds.delta_total) AND NOT p_second THEN
        RETURN 'second-person';
    END IF;
    RETURN 'done';
END $$;
ALTER FUNCTION lapwing.budget_outcome(ds lapwing.data_set, p_budget text, p_second boolean) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.budgets_evidence(p_budget text, p_ceiling text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT lapwing.digest(p_budget, p_ceiling)
$$;
ALTER FUNCTION lapwing.budgets_evidence(p_budget text, p_ceiling text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.chain(p_ledger_id text, p_entry_id bigint, p_head text, p_kind text, p_analyst text, p_charge_id bigint, p_loss numeric, p_delta numeric, p_detail text, p_evidence text) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    stamp text := to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"');
    h text := lapwing.digest(p_head, p_entry_id::text, stamp, p_kind, p_analyst, p_charge_id::text, p_loss::text, p_delta::text, p_detail,
        p_evidence);
BEGIN
    INSERT INTO lapwing.entry VALUES (p_ledger_id, p_entry_id, stamp, p_kind, p_analyst, p_charge_id, p_loss, p_delta, p_detail, p_evidence, h);
    RETURN h;
END $$;
ALTER FUNCTION lapwing.chain(p_ledger_id text, p_entry_id bigint, p_head text, p_kind text, p_analyst text, p_charge_id bigint, p_loss numeric, p_delta numeric, p_detail text, p_evidence text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.commit(p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_digest text, p_loss numeric, p_delta numeric, p_payload bytea, OUT outcome text, OUT o_state text[]) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    hashed text := encode(sha256(p_payload), 'hex');
    c record;
BEGIN
    outcome := 'not-open';
    SELECT o.analyst, o.state, o.payload_digest, w.epoch AS worker INTO c
        FROM lapwing.charge AS o LEFT JOIN lapwing.worker AS w ON w.epoch = p_epoch AND w.ended_at IS NULL
        WHERE o.ledger_id = p_ledger_id AND o.charge_id = p_charge_id AND o.epoch = p_epoch AND o.nonce = p_nonce
            AND o.digest = p_digest AND o.loss = p_loss AND o.delta = p_delta;
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
    ds.head := lapwing.chain(p_ledger_id, ds.entries + 1, ds.head, 'commit', c.analyst, p_charge_id, 0, 0, '', hashed);
    UPDATE lapwing.data_set SET entries = entries + 1, head = ds.head WHERE ledger_id = p_ledger_id RETURNING * INTO ds;
    outcome := 'done';
    o_state := lapwing.state_texts(ds);
END $$;
ALTER FUNCTION lapwing.commit(p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_digest text, p_loss numeric, p_delta numeric, p_payload bytea, OUT outcome text, OUT o_state text[]) OWNER TO lapwing_owner;
CREATE PROCEDURE lapwing.commit_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonce text, IN p_charge_id bigint, IN p_digest text, IN p_loss numeric, IN p_delta numeric, IN p_payload bytea, OUT outcome text, OUT o_state text[])
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM set_config('synchronous_commit', 'off', true), set_config('lapwing.flush_follows', 'yes', true);
    SELECT r.* INTO outcome, o_state
        FROM lapwing.commit(p_ledger_id, p_epoch, p_nonce, p_charge_id, p_digest, p_loss, p_delta, p_payload) AS r;
    COMMIT;
    CALL lapwing.wait_for_disk();
END $$;
ALTER PROCEDURE lapwing.commit_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonce text, IN p_charge_id bigint, IN p_digest text, IN p_loss numeric, IN p_delta numeric, IN p_payload bytea, OUT outcome text, OUT o_state text[]) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.create_data_set(p_ledger_id text, p_source_id text, p_fingerprint text, p_budget text, p_ceiling text, p_by text, p_override text, OUT outcome text, OUT known text[], OUT state lapwing.data_set) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE ds lapwing.data_set;
BEGIN
    PERFORM lapwing.require_durable();
    -- Two registrations of one source at once: the second waits here, then sees the first.
    LOCK TABLE lapwing.fingerprint IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO ds FROM lapwing.data_set WHERE ledger_id = p_ledger_id;
    IF FOUND THEN
        outcome := 'done'; state := ds; RETURN;  -- this very call, sent again
    END IF;
    SELECT array_agg(DISTINCT source_id ORDER BY source_id) INTO known FROM (
        SELECT source_id FROM lapwing.fingerprint WHERE fingerprint = p_fingerprint
        UNION SELECT source_id FROM lapwing.data_set WHERE source_id = p_source_id) AS registered;
    IF known IS NOT NULL AND p_override = '' THEN
        outcome := 'registered'; RETURN;
    END IF;
    FOR ds IN SELECT * FROM lapwing.data_set WHERE source_id = p_source_id AND NOT superseded FOR NO KEY UPDATE LOOP
        ds.superseded := true;
        ds.closed := true;
        ds := lapwing.append(ds, 'close', '', NULL, 0, 0, 'superseded by another ledger: ' || p_override, '');
    END LOOP;
    INSERT INTO lapwing.data_set (ledger_id, source_id, budget, ceiling, loss_total, delta_total, loss_ceiling, delta_ceiling, head)
        VALUES (p_ledger_id, p_source_id, p_budget, p_ceiling,
            (p_budget::jsonb ->> 'loss_total')::numeric, (p_budget::jsonb ->> 'delta_total')::numeric,
            (p_ceiling::jsonb ->> 'loss_total')::numeric, (p_ceiling::jsonb ->> 'delta_total')::numeric,
            lapwing.digest('lapwing ledger', p_ledger_id, p_source_id))
        RETURNING * INTO ds;
    INSERT INTO lapwing.fingerprint VALUES (p_fingerprint, p_source_id) ON CONFLICT DO NOTHING;
    ds := lapwing.append(ds, 'register', '', NULL, 0, 0, 'registered ' || p_source_id || ' by ' || p_by,
        lapwing.budgets_evidence(p_budget, p_ceiling));
    ds := lapwing.append(ds, 'policy', '', NULL, 0, 0, 'limits', lapwing.limits_evidence(ds));
    IF known IS NOT NULL THEN
        ds := lapwing.append(ds, 'override', '', NULL, 0, 0, 'source-registered: ' || p_override, '');
    END IF;
    outcome := 'done'; state := ds;
END $$;
ALTER FUNCTION lapwing.create_data_set(p_ledger_id text, p_source_id text, p_fingerprint text, p_budget text, p_ceiling text, p_by text, p_override text, OUT outcome text, OUT known text[], OUT state lapwing.data_set) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.decide(p_ledger_id text, p_proposal_id bigint, p_by text, p_approve boolean, p_seen text, p_reason text, OUT outcome text, OUT state lapwing.data_set) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    p lapwing.proposal;
    a lapwing.analyst;
    detail text;
BEGIN
    state := ds;
    SELECT * INTO p FROM lapwing.proposal WHERE ledger_id = p_ledger_id AND proposal_id = p_proposal_id AND proposal.state = 'open';
    IF NOT FOUND THEN
        outcome := 'proposal-unknown'; RETURN;
    ELSIF p.proposed_by = p_by THEN
        outcome := 'second-person'; RETURN;
    ELSIF ds.ceiling <> p_seen THEN
        outcome := 'changed'; RETURN;
    END IF;
    detail := 'proposal ' || p_proposal_id || ' by ' || p.proposed_by || ', ' || CASE WHEN p_approve THEN 'approved' ELSE 'denied' END
        || ' by ' || p_by || ': ' || p_reason;
    outcome := 'done';
    IF p_approve AND p.kind = 'budget' THEN
        outcome := lapwing.budget_outcome(ds, p.budget, true);
        IF outcome = 'done' THEN
            ds := lapwing.apply_budget(ds, p.budget, detail);
        END IF;
    ELSIF p_approve AND p.kind = 'ceiling' THEN
        IF p.loss_total < ds.loss_ceiling OR p.delta_total < ds.delta_ceiling THEN
            outcome := 'ceiling-lowered';
        ELSE
            ds.ceiling := p.budget; ds.loss_ceiling := p.loss_total; ds.delta_ceiling := p.delta_total;
            ds := lapwing.append(ds, 'ceiling', '', NULL, 0, 0, detail, lapwing.budgets_evidence(ds.budget, ds.ceiling));
        END IF;
    ELSIF p_approve THEN
        SELECT * INTO a FROM lapwing.analyst WHERE ledger_id = p_ledger_id AND analyst = p.target;
        IF NOT FOUND THEN
            outcome := 'analyst-unknown';
        ELSIF p.loss_total < a.loss_spent OR p.delta_total < a.delta_spent THEN
            outcome := 'below-spent';
        ELSE
            UPDATE lapwing.analyst SET loss_total = p.loss_total, delta_total = p.delta_total
                WHERE ledger_id = p_ledger_id AND analyst = p.target RETURNING * INTO a;
            ds := lapwing.append(ds, 'policy', p.target, NULL, 0, 0, detail, lapwing.analyst_evidence(a));
        END IF;
    ELSE
        ds := lapwing.append(ds, 'deny', p.target, NULL, 0, 0, detail, '');
    END IF;
    IF outcome = 'done' THEN
        UPDATE lapwing.proposal SET state = CASE WHEN p_approve THEN 'approved' ELSE 'denied' END, decided_by = p_by
            WHERE ledger_id = p_ledger_id AND proposal_id = p_proposal_id;
    END IF;
    state := ds;
END $$;
ALTER FUNCTION lapwing.decide(p_ledger_id text, p_proposal_id bigint, p_by text, p_approve boolean, p_seen text, p_reason text, OUT outcome text, OUT state lapwing.data_set) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.digest(VARIADIC fields text[]) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT encode(sha256(convert_to(array_to_json(fields)::text, 'UTF8')), 'hex')
$$;
ALTER FUNCTION lapwing.digest(VARIADIC fields text[]) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.disconnect_worker(p_ledger_id text, p_epoch text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    ds := lapwing.end_worker(ds, p_epoch, 'disconnected', 'the process ended its use of the ledger');
END $$;
ALTER FUNCTION lapwing.disconnect_worker(p_ledger_id text, p_epoch text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.end_worker(ds lapwing.data_set, p_epoch text, p_how text, p_detail text) RETURNS lapwing.data_set
    LANGUAGE plpgsql
    AS $$
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
            AND ended_at > clock_timestamp() - make_interval(secs => ds.lost_workers_seconds);
        IF lost >= ds.lost_workers_max THEN
            ds.closed := true;
            ds := lapwing.append(ds, 'close', '', NULL, 0, 0, 'too many lost workers', '');
        END IF;
    END IF;
    RETURN ds;
END $$;
ALTER FUNCTION lapwing.end_worker(ds lapwing.data_set, p_epoch text, p_how text, p_detail text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.find_answer(p_ledger_id text, p_digest text, p_analyst text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text) RETURNS record
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
    SELECT c.charge_id, c.payload, c.payload_digest
    FROM lapwing.charge c JOIN lapwing.data_set d USING (ledger_id)
    WHERE c.ledger_id = p_ledger_id AND c.digest = p_digest AND c.state = 'committed'
        AND (p_analyst IS NULL OR (NOT d.closed AND (d.answers_shared OR c.analyst = p_analyst) AND EXISTS (
            SELECT FROM lapwing.analyst a WHERE a.ledger_id = p_ledger_id AND a.analyst = p_analyst AND NOT a.suspended)))
    ORDER BY c.charge_id DESC LIMIT 1
$$;
ALTER FUNCTION lapwing.find_answer(p_ledger_id text, p_digest text, p_analyst text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.forfeit(p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_incident boolean, OUT outcome text, OUT state lapwing.data_set) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    c lapwing.charge;
BEGIN
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
ALTER FUNCTION lapwing.forfeit(p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_incident boolean, OUT outcome text, OUT state lapwing.data_set) OWNER TO lapwing_owner;
CREATE TABLE lapwing.analyst_group (
    ledger_id text NOT NULL,
    group_name text NOT NULL,
    loss_total lapwing.amount,
    delta_total lapwing.amount,
    loss_spent lapwing.amount DEFAULT 0 NOT NULL,
    delta_spent lapwing.amount DEFAULT 0 NOT NULL,
    CONSTRAINT analyst_group_check CHECK (((loss_spent)::numeric <= (loss_total)::numeric)),
    CONSTRAINT analyst_group_check1 CHECK (((delta_spent)::numeric <= (delta_total)::numeric))
)
WITH (fillfactor='70');
ALTER TABLE lapwing.analyst_group OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.group_evidence(g lapwing.analyst_group) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT 'group ' || g.group_name || ' ' || lapwing.digest(g.loss_total::text, g.delta_total::text)
$$;
ALTER FUNCTION lapwing.group_evidence(g lapwing.analyst_group) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.limits_evidence(ds lapwing.data_set) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT 'limits ' || lapwing.digest(ds.statement_loss_max::text, ds.day_loss_max::text, ds.answers_shared::text,
        ds.lost_workers_max::text, ds.lost_workers_seconds::text)
$$;
ALTER FUNCTION lapwing.limits_evidence(ds lapwing.data_set) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.locked(p_ledger_id text) RETURNS lapwing.data_set
    LANGUAGE plpgsql
    AS $$
DECLARE ds lapwing.data_set;
BEGIN
    PERFORM lapwing.require_durable();
    SELECT * INTO ds FROM lapwing.data_set WHERE ledger_id = p_ledger_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no such ledger' USING ERRCODE = 'LW002';
    END IF;
    RETURN ds;
END $$;
ALTER FUNCTION lapwing.locked(p_ledger_id text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.propose(p_ledger_id text, p_kind text, p_target text, p_by text, p_budget text, p_loss_total numeric, p_delta_total numeric, p_reason text, OUT outcome text, OUT o_proposal_id bigint, OUT state lapwing.data_set) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    state := ds;
    IF p_kind = 'analyst' AND NOT EXISTS (SELECT FROM lapwing.analyst WHERE ledger_id = p_ledger_id AND analyst = p_target AND NOT suspended)
    THEN
        outcome := 'analyst-unknown'; RETURN;
    END IF;
    outcome := 'done';
    SELECT coalesce(max(proposal_id), 0) + 1 INTO o_proposal_id FROM lapwing.proposal WHERE ledger_id = p_ledger_id;
    INSERT INTO lapwing.proposal (ledger_id, proposal_id, kind, target, proposed_by, budget, loss_total, delta_total, reason)
        VALUES (p_ledger_id, o_proposal_id, p_kind, p_target, p_by, p_budget, p_loss_total, p_delta_total, p_reason);
    state := lapwing.append(ds, 'propose', p_target, NULL, 0, 0, 'proposal ' || o_proposal_id || ' by ' || p_by || ': ' || p_reason,
        lapwing.digest(o_proposal_id::text, p_kind, p_target, p_by, p_budget, p_loss_total::text, p_delta_total::text));
END $$;
ALTER FUNCTION lapwing.propose(p_ledger_id text, p_kind text, p_target text, p_by text, p_budget text, p_loss_total numeric, p_delta_total numeric, p_reason text, OUT outcome text, OUT o_proposal_id bigint, OUT state lapwing.data_set) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.record(p_ledger_id text, p_kind text, p_detail text) RETURNS lapwing.data_set
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    IF p_kind NOT IN ('override', 'version', 'retire') THEN
        RAISE EXCEPTION 'entries of this kind are written by the ledger itself' USING ERRCODE = 'LW009';
    END IF;
    RETURN lapwing.append(ds, p_kind, '', NULL, 0, 0, p_detail, '');
END $$;
ALTER FUNCTION lapwing.record(p_ledger_id text, p_kind text, p_detail text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed in this way', TG_TABLE_NAME USING ERRCODE = 'LW009';
END $$;
ALTER FUNCTION lapwing.refuse_change() OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.register_worker(p_ledger_id text, p_epoch text, p_host text, p_boot text, p_namespace text, p_pid bigint, p_started text, p_lease_seconds integer, p_dead text[]) RETURNS lapwing.data_set
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    w record;
BEGIN
    FOR w IN SELECT epoch FROM lapwing.worker WHERE ledger_id = p_ledger_id AND ended_at IS NULL AND epoch <> p_epoch
        AND (lease_until < clock_timestamp() OR epoch = ANY (p_dead)) ORDER BY epoch LOOP
        ds := lapwing.end_worker(ds, w.epoch, 'lost', 'the worker that reserved it is gone');
    END LOOP;
    INSERT INTO lapwing.worker (epoch, ledger_id, host, boot, namespace, pid, started, lease_until)
        VALUES (p_epoch, p_ledger_id, p_host, p_boot, p_namespace, p_pid, p_started,
            clock_timestamp() + make_interval(secs => p_lease_seconds))
        ON CONFLICT (epoch) DO NOTHING;  -- the same statement, sent again because its reply was lost
    RETURN ds;
END $$;
ALTER FUNCTION lapwing.register_worker(p_ledger_id text, p_epoch text, p_host text, p_boot text, p_namespace text, p_pid bigint, p_started text, p_lease_seconds integer, p_dead text[]) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.renew_worker(p_epoch text, p_lease_seconds integer) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
    WITH renewed AS (
        UPDATE lapwing.worker SET lease_until = clock_timestamp() + make_interval(secs => p_lease_seconds)
        WHERE epoch = p_epoch AND ended_at IS NULL RETURNING 1)
    SELECT EXISTS (SELECT FROM renewed)
$$;
ALTER FUNCTION lapwing.renew_worker(p_epoch text, p_lease_seconds integer) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.replay(ds lapwing.data_set, p_charge_id bigint, p_epoch text, p_nonce text, p_digest text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) RETURNS record
    LANGUAGE plpgsql
    AS $$
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
ALTER FUNCTION lapwing.replay(ds lapwing.data_set, p_charge_id bigint, p_epoch text, p_nonce text, p_digest text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.require_durable() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'lapwing', 'pg_temp'
    AS $$
BEGIN
    IF (current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') AND current_setting('lapwing.flush_follows', true) IS DISTINCT FROM 'yes')
        OR current_setting('fsync') <> 'on'
        OR current_setting('full_page_writes') <> 'on' OR current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the server would not keep what it commits' USING ERRCODE = 'LW001';
    END IF;
END $$;
ALTER FUNCTION lapwing.require_durable() OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.require_growth() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.loss_spent < OLD.loss_spent OR NEW.delta_spent < OLD.delta_spent OR NEW.entries < OLD.entries OR NEW.charges < OLD.charges THEN
        RAISE EXCEPTION 'what was counted only grows' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;
ALTER FUNCTION lapwing.require_growth() OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.require_reserved() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.state <> 'reserved' THEN
        RAISE EXCEPTION 'a charge starts reserved' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;
ALTER FUNCTION lapwing.require_reserved() OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.require_totals() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (NEW.budget::jsonb ->> 'loss_total')::numeric <> NEW.loss_total OR (NEW.budget::jsonb ->> 'delta_total')::numeric <> NEW.delta_total
        OR (NEW.ceiling::jsonb ->> 'loss_total')::numeric <> NEW.loss_ceiling
        OR (NEW.ceiling::jsonb ->> 'delta_total')::numeric <> NEW.delta_ceiling THEN
        RAISE EXCEPTION 'the totals are not those of the budget' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;
ALTER FUNCTION lapwing.require_totals() OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.reserve(p_ledger_id text, p_epoch text, p_nonce text, p_analyst text, p_request_id text, p_digest text, p_version bigint, p_summary text, p_loss numeric, p_delta numeric, p_anchor_entries bigint, p_anchor_head text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    today date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    seen record;
    day_loss_of_all numeric;
    day_loss_of_analyst numeric;
BEGIN
    -- The chain has the entry that the caller knows of; one who knows of none says 0.
    IF p_anchor_entries <> 0 AND p_anchor_head <> ds.head THEN
        PERFORM FROM lapwing.entry WHERE ledger_id = p_ledger_id AND entry_id = p_anchor_entries AND chained = p_anchor_head;
        IF NOT FOUND THEN
            outcome := 'rolled-back'; RETURN;
        END IF;
    END IF;
    -- Everything else that the decision depends on, in one query after the lock.
    SELECT w.epoch, a.analyst, a.group_name, a.loss_total, a.delta_total, a.loss_spent, a.delta_spent, a.day_loss_max, a.day, a.day_loss,
            g.loss_total AS group_loss_total, g.delta_total AS group_delta_total,
            g.loss_spent AS group_loss_spent, g.delta_spent AS group_delta_spent, c.charge_id
        INTO seen
        FROM (SELECT) AS always_one_row
        LEFT JOIN lapwing.worker w ON w.epoch = p_epoch AND w.ledger_id = p_ledger_id AND w.ended_at IS NULL
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
    -- The day only moves forwards: a clock that is put back does not give a day twice.
    day_loss_of_all := p_loss + CASE WHEN ds.day >= today THEN ds.day_loss ELSE 0 END;
    day_loss_of_analyst := p_loss + CASE WHEN seen.day >= today THEN seen.day_loss ELSE 0 END;
    -- A comparison with a limit that is NULL is not true: no limit.
    IF p_loss > ds.statement_loss_max THEN
        outcome := 'statement-limit'; RETURN;
    ELSIF day_loss_of_all > ds.day_loss_max OR day_loss_of_analyst > seen.day_loss_max THEN
        outcome := 'day-limit'; RETURN;
    ELSIF seen.loss_spent + p_loss > seen.loss_total OR seen.delta_spent + p_delta > seen.delta_total THEN
        outcome := 'analyst-budget'; RETURN;
    ELSIF seen.group_loss_spent + p_loss > seen.group_loss_total OR seen.group_delta_spent + p_delta > seen.group_delta_total THEN
        outcome := 'group-budget'; RETURN;
    ELSIF ds.loss_spent + p_loss > ds.loss_total OR ds.delta_spent + p_delta > ds.delta_total THEN
        outcome := 'budget'; RETURN;
    END IF;
    o_charge_id := ds.charges + 1;
    INSERT INTO lapwing.charge (ledger_id, charge_id, analyst, group_name, request_id, digest, version, summary, loss, delta, epoch, nonce)
        VALUES (p_ledger_id, o_charge_id, p_analyst, seen.group_name, p_request_id, p_digest, p_version, p_summary, p_loss, p_delta, p_epoch,
            p_nonce);
    UPDATE lapwing.analyst SET loss_spent = loss_spent + p_loss, delta_spent = delta_spent + p_delta,
            day = greatest(day, today), day_loss = day_loss_of_analyst
        WHERE ledger_id = p_ledger_id AND analyst = p_analyst;
    IF seen.group_name IS NOT NULL THEN
        UPDATE lapwing.analyst_group SET loss_spent = loss_spent + p_loss, delta_spent = delta_spent + p_delta
            WHERE ledger_id = p_ledger_id AND group_name = seen.group_name;
    END IF;
    ds.head := lapwing.chain(p_ledger_id, ds.entries + 1, ds.head, 'reserve', p_analyst, o_charge_id, p_loss, p_delta, p_summary,
        lapwing.digest(o_charge_id::text, p_analyst, seen.group_name, p_request_id, p_digest, p_version::text, '', p_summary,
            p_loss::text, p_delta::text, p_epoch, p_nonce));
    UPDATE lapwing.data_set SET loss_spent = loss_spent + p_loss, delta_spent = delta_spent + p_delta, entries = entries + 1,
            charges = charges + 1, head = ds.head, day = greatest(day, today), day_loss = day_loss_of_all
        WHERE ledger_id = p_ledger_id
        RETURNING * INTO ds;
    outcome := 'permit';
    o_state := lapwing.state_texts(ds);
END $$;
ALTER FUNCTION lapwing.reserve(p_ledger_id text, p_epoch text, p_nonce text, p_analyst text, p_request_id text, p_digest text, p_version bigint, p_summary text, p_loss numeric, p_delta numeric, p_anchor_entries bigint, p_anchor_head text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) OWNER TO lapwing_owner;
CREATE PROCEDURE lapwing.reserve_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonce text, IN p_analyst text, IN p_request_id text, IN p_digest text, IN p_version bigint, IN p_summary text, IN p_loss numeric, IN p_delta numeric, IN p_anchor_entries bigint, IN p_anchor_head text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[])
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM set_config('synchronous_commit', 'off', true), set_config('lapwing.flush_follows', 'yes', true);
    SELECT r.* INTO outcome, o_charge_id, o_payload, o_payload_digest, o_state
        FROM lapwing.reserve(p_ledger_id, p_epoch, p_nonce, p_analyst, p_request_id, p_digest, p_version, p_summary, p_loss, p_delta,
            p_anchor_entries, p_anchor_head) AS r;
    COMMIT;  -- both settings end here
    CALL lapwing.wait_for_disk();
END $$;
ALTER PROCEDURE lapwing.reserve_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonce text, IN p_analyst text, IN p_request_id text, IN p_digest text, IN p_version bigint, IN p_summary text, IN p_loss numeric, IN p_delta numeric, IN p_anchor_entries bigint, IN p_anchor_head text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.reserve_many(p_ledger_id text, p_epoch text, p_nonces text[], p_analysts text[], p_request_ids text[], p_digests text[], p_versions bigint[], p_summaries text[], p_losses numeric[], p_deltas numeric[], p_anchor_entries bigint, p_anchor_head text, OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[]) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    today date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    stamp text := to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"');
    n integer := cardinality(p_nonces);
    one record;
    groups text[];
    evidence text[];
    heads text[];
BEGIN
    IF NOT (p_anchor_entries = 0 OR p_anchor_head = ds.head
            OR EXISTS (SELECT FROM lapwing.entry WHERE ledger_id = p_ledger_id AND entry_id = p_anchor_entries AND chained = p_anchor_head))
        OR NOT lapwing.all_fit(ds, p_epoch, p_analysts, p_request_ids, p_losses, p_deltas, today) THEN
        FOR i IN 1..n LOOP
            SELECT r.* INTO one FROM lapwing.reserve(p_ledger_id, p_epoch, p_nonces[i], p_analysts[i], p_request_ids[i], p_digests[i],
                p_versions[i], p_summaries[i], p_losses[i], p_deltas[i], p_anchor_entries, p_anchor_head) AS r;
            outcomes[i] := one.outcome;
            o_charge_ids[i] := one.o_charge_id;
            o_payloads[i] := one.o_payload;
            o_payload_digests[i] := one.o_payload_digest;
            o_state := coalesce(one.o_state, o_state);
        END LOOP;
        RETURN;
    END IF;
    SELECT array_agg(a.group_name ORDER BY r.i) INTO groups
        FROM unnest(p_analysts) WITH ORDINALITY AS r (analyst, i)
        JOIN lapwing.analyst a ON a.ledger_id = p_ledger_id AND a.analyst = r.analyst;
    FOR i IN 1..n LOOP
        outcomes[i] := 'permit';
        o_charge_ids[i] := ds.charges + i;
        evidence[i] := lapwing.digest((ds.charges + i)::text, p_analysts[i], groups[i], p_request_ids[i], p_digests[i], p_versions[i]::text, '',
            p_summaries[i], p_losses[i]::text, p_deltas[i]::text, p_epoch, p_nonces[i]);
        ds.head := lapwing.digest(ds.head, (ds.entries + i)::text, stamp, 'reserve', p_analysts[i], (ds.charges + i)::text,
            p_losses[i]::text, p_deltas[i]::text, p_summaries[i], evidence[i]);
        heads[i] := ds.head;
    END LOOP;
    INSERT INTO lapwing.charge (ledger_id, charge_id, analyst, group_name, request_id, digest, version, summary, loss, delta, epoch, nonce)
        SELECT p_ledger_id, r.charge_id, r.analyst, r.group_name, r.request_id, r.digest, r.version, r.summary, r.loss, r.delta, p_epoch, r.nonce
        FROM unnest(o_charge_ids, p_analysts, groups, p_request_ids, p_digests, p_versions, p_summaries, p_losses, p_deltas, p_nonces)
            AS r (charge_id, analyst, group_name, request_id, digest, version, summary, loss, delta, nonce);
    INSERT INTO lapwing.entry
        SELECT p_ledger_id, ds.entries + r.i, stamp, 'reserve', r.analyst, r.charge_id, r.loss, r.delta, r.summary, r.evidence, r.head
        FROM unnest(o_charge_ids, p_analysts, p_losses, p_deltas, p_summaries, evidence, heads) WITH ORDINALITY
            AS r (charge_id, analyst, loss, delta, summary, evidence, head, i);
    UPDATE lapwing.analyst AS a SET loss_spent = a.loss_spent + s.loss, delta_spent = a.delta_spent + s.delta, day = greatest(a.day, today),
            day_loss = s.loss + CASE WHEN a.day >= today THEN a.day_loss ELSE 0 END
        FROM (SELECT r.analyst, sum(r.loss) AS loss, sum(r.delta) AS delta
            FROM unnest(p_analysts, p_losses, p_deltas) AS r (analyst, loss, delta) GROUP BY r.analyst) AS s
        WHERE a.ledger_id = p_ledger_id AND a.analyst = s.analyst;
    UPDATE lapwing.analyst_group AS g SET loss_spent = g.loss_spent + s.loss, delta_spent = g.delta_spent + s.delta
        FROM (SELECT r.group_name, sum(r.loss) AS loss, sum(r.delta) AS delta
            FROM unnest(groups, p_losses, p_deltas) AS r (group_name, loss, delta) GROUP BY r.group_name) AS s
        WHERE g.ledger_id = p_ledger_id AND g.group_name = s.group_name;
    UPDATE lapwing.data_set AS d SET loss_spent = d.loss_spent + s.loss, delta_spent = d.delta_spent + s.delta, entries = d.entries + n,
            charges = d.charges + n, head = ds.head, day = greatest(d.day, today),
            day_loss = s.loss + CASE WHEN d.day >= today THEN d.day_loss ELSE 0 END
        FROM (SELECT sum(r.loss) AS loss, sum(r.delta) AS delta FROM unnest(p_losses, p_deltas) AS r (loss, delta)) AS s
        WHERE d.ledger_id = p_ledger_id
        RETURNING d.* INTO ds;
    o_state := lapwing.state_texts(ds);
END $$;
ALTER FUNCTION lapwing.reserve_many(p_ledger_id text, p_epoch text, p_nonces text[], p_analysts text[], p_request_ids text[], p_digests text[], p_versions bigint[], p_summaries text[], p_losses numeric[], p_deltas numeric[], p_anchor_entries bigint, p_anchor_head text, OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[]) OWNER TO lapwing_owner;
CREATE PROCEDURE lapwing.reserve_many_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonces text[], IN p_analysts text[], IN p_request_ids text[], IN p_digests text[], IN p_versions bigint[], IN p_summaries text[], IN p_losses numeric[], IN p_deltas numeric[], IN p_anchor_entries bigint, IN p_anchor_head text, OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[])
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM set_config('synchronous_commit', 'off', true), set_config('lapwing.flush_follows', 'yes', true);
    SELECT r.* INTO outcomes, o_charge_ids, o_payloads, o_payload_digests, o_state
        FROM lapwing.reserve_many(p_ledger_id, p_epoch, p_nonces, p_analysts, p_request_ids, p_digests, p_versions, p_summaries, p_losses,
            p_deltas, p_anchor_entries, p_anchor_head) AS r;
    COMMIT;  -- both settings end here
    CALL lapwing.wait_for_disk();
END $$;
ALTER PROCEDURE lapwing.reserve_many_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonces text[], IN p_analysts text[], IN p_request_ids text[], IN p_digests text[], IN p_versions bigint[], IN p_summaries text[], IN p_losses numeric[], IN p_deltas numeric[], IN p_anchor_entries bigint, IN p_anchor_head text, OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[]) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.set_analyst(p_ledger_id text, p_analyst text, p_group text, p_suspended boolean, p_loss_total numeric, p_delta_total numeric, p_day_loss_max numeric, p_detail text, OUT outcome text, OUT state lapwing.data_set) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    a lapwing.analyst;
BEGIN
    state := ds;
    SELECT * INTO a FROM lapwing.analyst WHERE ledger_id = p_ledger_id AND analyst = p_analyst;
    IF p_loss_total < a.loss_spent OR p_delta_total < a.delta_spent THEN
        outcome := 'below-spent'; RETURN;
    END IF;
    IF p_group IS NOT NULL AND NOT EXISTS (SELECT FROM lapwing.analyst_group WHERE ledger_id = p_ledger_id AND group_name = p_group) THEN
        outcome := 'group-unknown'; RETURN;
    END IF;
    INSERT INTO lapwing.analyst (ledger_id, analyst, group_name, suspended, loss_total, delta_total, day_loss_max)
        VALUES (p_ledger_id, p_analyst, p_group, p_suspended, p_loss_total, p_delta_total, p_day_loss_max)
        ON CONFLICT (ledger_id, analyst) DO UPDATE SET group_name = excluded.group_name, suspended = excluded.suspended,
            loss_total = excluded.loss_total, delta_total = excluded.delta_total, day_loss_max = excluded.day_loss_max
        RETURNING * INTO a;
    state := lapwing.append(ds, 'policy', p_analyst, NULL, 0, 0, p_detail, lapwing.analyst_evidence(a));
    outcome := 'done';
END $$;
ALTER FUNCTION lapwing.set_analyst(p_ledger_id text, p_analyst text, p_group text, p_suspended boolean, p_loss_total numeric, p_delta_total numeric, p_day_loss_max numeric, p_detail text, OUT outcome text, OUT state lapwing.data_set) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.set_budget(p_ledger_id text, p_seen text, p_budget text, p_detail text, OUT outcome text, OUT state lapwing.data_set) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    outcome := CASE WHEN ds.ceiling <> p_seen THEN 'changed' ELSE lapwing.budget_outcome(ds, p_budget, false) END;
    state := CASE WHEN outcome = 'done' THEN lapwing.apply_budget(ds, p_budget, p_detail) ELSE ds END;
END $$;
ALTER FUNCTION lapwing.set_budget(p_ledger_id text, p_seen text, p_budget text, p_detail text, OUT outcome text, OUT state lapwing.data_set) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.set_closed(p_ledger_id text, p_closed boolean, p_detail text) RETURNS lapwing.data_set
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    ds.closed := p_closed;
    RETURN lapwing.append(ds, CASE WHEN p_closed THEN 'close' ELSE 'reopen' END, '', NULL, 0, 0, p_detail, '');
END $$;
ALTER FUNCTION lapwing.set_closed(p_ledger_id text, p_closed boolean, p_detail text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.set_group(p_ledger_id text, p_group text, p_loss_total numeric, p_delta_total numeric, p_detail text, OUT outcome text, OUT state lapwing.data_set) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    g lapwing.analyst_group;
BEGIN
    state := ds;
    SELECT * INTO g FROM lapwing.analyst_group WHERE ledger_id = p_ledger_id AND group_name = p_group;
    IF p_loss_total < g.loss_spent OR p_delta_total < g.delta_spent THEN
        outcome := 'below-spent'; RETURN;
    END IF;
    INSERT INTO lapwing.analyst_group (ledger_id, group_name, loss_total, delta_total) VALUES (p_ledger_id, p_group, p_loss_total, p_delta_total)
        ON CONFLICT (ledger_id, group_name) DO UPDATE SET loss_total = excluded.loss_total, delta_total = excluded.delta_total
        RETURNING * INTO g;
    state := lapwing.append(ds, 'policy', '', NULL, 0, 0, p_detail, lapwing.group_evidence(g));
    outcome := 'done';
END $$;
ALTER FUNCTION lapwing.set_group(p_ledger_id text, p_group text, p_loss_total numeric, p_delta_total numeric, p_detail text, OUT outcome text, OUT state lapwing.data_set) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.set_limits(p_ledger_id text, p_statement_loss_max numeric, p_day_loss_max numeric, p_answers_shared boolean, p_lost_workers_max integer, p_lost_workers_seconds integer, p_detail text) RETURNS lapwing.data_set
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'lapwing', 'pg_temp'
    SET lock_timeout TO '30s'
    AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    ds.statement_loss_max := p_statement_loss_max; ds.day_loss_max := p_day_loss_max; ds.answers_shared := p_answers_shared;
    ds.lost_workers_max := p_lost_workers_max; ds.lost_workers_seconds := p_lost_workers_seconds;
    RETURN lapwing.append(ds, 'policy', '', NULL, 0, 0, p_detail, lapwing.limits_evidence(ds));
END $$;
ALTER FUNCTION lapwing.set_limits(p_ledger_id text, p_statement_loss_max numeric, p_day_loss_max numeric, p_answers_shared boolean, p_lost_workers_max integer, p_lost_workers_seconds integer, p_detail text) OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.state_texts(ds lapwing.data_set) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    RETURN ARRAY[ds.ledger_id, ds.source_id, ds.entries::text, ds.head, ds.budget, ds.ceiling, ds.loss_spent::text, ds.delta_spent::text,
        ds.closed::text];
END $$;
ALTER FUNCTION lapwing.state_texts(ds lapwing.data_set) OWNER TO lapwing_owner;
CREATE PROCEDURE lapwing.wait_for_disk()
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM pg_logical_emit_message(true, 'lapwing', '');
END $$;
ALTER PROCEDURE lapwing.wait_for_disk() OWNER TO lapwing_owner;
CREATE TABLE lapwing.alembic_version (
    version_num character varying(32) NOT NULL
);
ALTER TABLE lapwing.alembic_version OWNER TO lapwing_owner;
CREATE TABLE lapwing.charge (
    ledger_id text NOT NULL,
    charge_id bigint NOT NULL,
    analyst text NOT NULL,
    group_name text,
    request_id text NOT NULL,
    digest text NOT NULL,
    version lapwing.version NOT NULL,
    block lapwing.block DEFAULT ''::text NOT NULL,
    summary text NOT NULL,
    loss lapwing.positive_amount NOT NULL,
    delta lapwing.amount NOT NULL,
    epoch text NOT NULL,
    nonce text NOT NULL,
    state lapwing.charge_state DEFAULT 'reserved'::lapwing.charge_state NOT NULL,
    payload bytea,
    payload_digest text,
    CONSTRAINT charge_check CHECK ((((state = 'committed'::lapwing.charge_state) = (payload IS NOT NULL)) AND ((state = 'committed'::lapwing.charge_state) = (payload_digest IS NOT NULL))))
)
WITH (fillfactor='80');
ALTER TABLE lapwing.charge OWNER TO lapwing_owner;
CREATE TABLE lapwing.entry (
    ledger_id text NOT NULL,
    entry_id bigint NOT NULL,
    at text NOT NULL,
    kind text NOT NULL,
    analyst text NOT NULL,
    charge_id bigint,
    loss lapwing.amount NOT NULL,
    delta lapwing.amount NOT NULL,
    detail text NOT NULL,
    evidence text NOT NULL,
    chained text NOT NULL
);
ALTER TABLE lapwing.entry OWNER TO lapwing_owner;
CREATE TABLE lapwing.fingerprint (
    fingerprint text NOT NULL,
    source_id text NOT NULL
);
ALTER TABLE lapwing.fingerprint OWNER TO lapwing_owner;
CREATE TABLE lapwing.proposal (
    ledger_id text NOT NULL,
    proposal_id bigint NOT NULL,
    kind text NOT NULL,
    target text NOT NULL,
    proposed_by text NOT NULL,
    budget text NOT NULL,
    loss_total lapwing.amount NOT NULL,
    delta_total lapwing.amount NOT NULL,
    reason text NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    decided_by text,
    CONSTRAINT proposal_check CHECK (((kind = 'analyst'::text) = (target <> ''::text))),
    CONSTRAINT proposal_check1 CHECK (((state = 'open'::text) = (decided_by IS NULL))),
    CONSTRAINT proposal_check2 CHECK ((decided_by <> proposed_by)),
    CONSTRAINT proposal_kind_check CHECK ((kind = ANY (ARRAY['budget'::text, 'ceiling'::text, 'analyst'::text]))),
    CONSTRAINT proposal_state_check CHECK ((state = ANY (ARRAY['open'::text, 'approved'::text, 'denied'::text])))
);
ALTER TABLE lapwing.proposal OWNER TO lapwing_owner;
CREATE TABLE lapwing.worker (
    epoch text NOT NULL,
    ledger_id text NOT NULL,
    host text NOT NULL,
    boot text NOT NULL,
    namespace text NOT NULL,
    pid bigint NOT NULL,
    started text NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    ended_how text,
    forfeited integer DEFAULT 0 NOT NULL,
    CONSTRAINT worker_check CHECK (((ended_at IS NULL) = (ended_how IS NULL))),
    CONSTRAINT worker_ended_how_check CHECK ((ended_how = ANY (ARRAY['disconnected'::text, 'lost'::text])))
);
ALTER TABLE lapwing.worker OWNER TO lapwing_owner;
INSERT INTO lapwing.alembic_version VALUES ('0001');
INSERT INTO lapwing.analyst VALUES ('36a399d95a6d5d077148b70479369894', 'bo', 'team', false, 8, NULL, 2, 0, NULL, '2026-11-15', 2);
INSERT INTO lapwing.analyst VALUES ('36a399d95a6d5d077148b70479369894', 'ana', NULL, false, NULL, NULL, 7, 0, NULL, '2026-11-15', 7);
INSERT INTO lapwing.analyst_group VALUES ('36a399d95a6d5d077148b70479369894', 'team', 9, NULL, 2, 0);
INSERT INTO lapwing.charge VALUES ('36a399d95a6d5d077148b70479369894', 1, 'ana', NULL, 'paid', 'plan of paid', 1, '', 'SELECT ''paid''', 3, 0, 'c0f957ccef723710202d08bf9bcbb206', '09bcf2a4dfe44122b99ed6af4bff27a7', 'committed', '\x616e73776572', '0db52f4076c082518412afd3dd3576e2cb0c63703fd7fed5e23ade60efef31d9');
INSERT INTO lapwing.charge VALUES ('36a399d95a6d5d077148b70479369894', 2, 'bo', 'team', 'lost', 'plan of lost', 1, '', 'SELECT ''lost''', 2, 0, 'c0f957ccef723710202d08bf9bcbb206', '08a0f7cf96e4b0731a763dbed6aa1124', 'forfeited', NULL, NULL);
INSERT INTO lapwing.charge VALUES ('36a399d95a6d5d077148b70479369894', 3, 'ana', NULL, 'open', 'plan of open', 1, '', 'SELECT ''open''', 4, 0, 'c0f957ccef723710202d08bf9bcbb206', 'ebff757402004b88e4222c2be6122106', 'reserved', NULL, NULL);
INSERT INTO lapwing.data_set VALUES ('36a399d95a6d5d077148b70479369894', 'clinic', false, '{"account":"pure","delta":"0","delta_conversion":"0","delta_keys":"0","delta_total":"0","epsilon":"1/40000000000000","loss_total":"25"}', '{"account":"pure","delta":"0","delta_conversion":"0","delta_keys":"0","delta_total":"0","epsilon":"3/100000000000000","loss_total":"30"}', 9, 0, 25, 0, 30, 0, false, 14, 3, '388a1d1e14c7a5118a9c70e88e63448d4ea0bbcac422928a85bdf2b691dc9846', NULL, NULL, '2026-11-15', 9, true, 3, 3600);
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 1, '2026-11-15T15:33:11.390+00:00', 'register', '', NULL, 0, 0, 'registered clinic by owner', '45e3d108944d61681867e2e32078fe519e704abc796b1255bd1b539594696fea', '408c5a9a02891c9c49a0336bed9be5d14643e011aede5fce9ca4c2511990f97a');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 2, '2026-11-15T15:33:11.407+00:00', 'policy', '', NULL, 0, 0, 'limits', 'limits 060570b602b548747fdb82a4034a828e4c88c7eb1bb3821472b317cdeb2c7f84', 'a8ddf5139fa9b0ad0d93b07764de1ab218a9ecb3473c0ea7f67550d9ff033e34');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 3, '2026-11-15T15:33:11.479+00:00', 'policy', 'ana', NULL, 0, 0, 'admit, by owner', 'analyst ana 1e2410efa485fe702b76504844ae7494b6397ce659f1a30faf990aed1c749d5f', '8bb1185b53a339cc30bb15b1dd7a8b37c7a67798a0be56962ec5693743ca39a1');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 4, '2026-11-15T15:33:11.490+00:00', 'policy', 'bo', NULL, 0, 0, 'admit, by owner', 'analyst bo 1e2410efa485fe702b76504844ae7494b6397ce659f1a30faf990aed1c749d5f', '6d8b3b40e016edf7cb38bf9afcf8fb49a3ce9a4f5b1b53904adac6d319f9ff5b');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 5, '2026-11-15T15:33:11.499+00:00', 'policy', '', NULL, 0, 0, 'group team, by owner', 'group team 7192059ef513f646d16c0f5e9d467455aa8254f0a479cf6c0b233fa53c7d7bf5', '096fffb58ca4bf951170eed1546ee5afad341af749d11122429940b873f9911b');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 6, '2026-11-15T15:33:11.504+00:00', 'policy', 'bo', NULL, 0, 0, 'admit, by owner', 'analyst bo 603569a5b110e70fe3bd944a82f494ccf92024e6ae1112c4c0510f5378bb0181', 'ce32bccc07f20bf98ee377016b0a6b09be065963766c98f05caae93d201f7013');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 7, '2026-11-15T15:33:11.526+00:00', 'propose', '', NULL, 0, 0, 'proposal 1 by olga: more', '8fdb1dfa6abae321a68d05c503492f6242afbf140654e588fd421d04da89bbe6', 'cc9aa2024259da8d05827248850c099946038442c3fa347c8a55cb12a26ae947');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 8, '2026-11-15T15:33:11.599+00:00', 'budget', '', NULL, 0, 0, 'proposal 1 by olga, approved by piet: ', '2524dbcb46ea90b4af90a5919b7a1d82110b41c3788c85ce937c5db7da3799e8', '778ee2bdf7b07c8181addc6eb4b73bb575040cb977b5e39450a6a4a37670ca59');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 9, '2026-11-15T15:33:11.618+00:00', 'propose', '', NULL, 0, 0, 'proposal 2 by olga: still open', 'c44f227212b72bcde6b01d2a9efad470aa856670ad364d1c3c57caca0872bc46', '1247785fbf89f951d8d557bdab022cc02d0ccf7b44fbb1c45aed101a19f129f7');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 10, '2026-11-15T15:33:11.642+00:00', 'reserve', 'ana', 1, 3, 0, 'SELECT ''paid''', 'ebc9409fc1ff0392ac557d558e6375d98c0e57cfe2e906211154aaa9c7109a3d', '8a7f935f14c251d4399f679806785c8718bce71b74dfa3a2cc64eac52249c2ff');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 11, '2026-11-15T15:33:11.660+00:00', 'commit', 'ana', 1, 0, 0, '', '0db52f4076c082518412afd3dd3576e2cb0c63703fd7fed5e23ade60efef31d9', '730f39c736950076aad3e09803e881b45457436dde0bbaac0afcc0028b593c6e');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 12, '2026-11-15T15:33:11.683+00:00', 'reserve', 'bo', 2, 2, 0, 'SELECT ''lost''', 'f697478aad7c424e55bae4f3dd9ea75e44d89c58fd0f3a8e797b87bc2d1c90cf', 'e6614024151c579255da75fc3ae337b7fd8dfdb39a89b428a051b1984287b5bc');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 13, '2026-11-15T15:33:11.708+00:00', 'forfeit', 'bo', 2, 0, 0, 'no answer', '', 'd7b5acdf8ceb2ed957dc809baa1ebee9d31a4184e821110e5e812e338b4c6f66');
INSERT INTO lapwing.entry VALUES ('36a399d95a6d5d077148b70479369894', 14, '2026-11-15T15:33:11.712+00:00', 'reserve', 'ana', 3, 4, 0, 'SELECT ''open''', '399a7a815e87a863dc59aec23f36fe9179f2e36d55b1f828b4b702064f562de4', '388a1d1e14c7a5118a9c70e88e63448d4ea0bbcac422928a85bdf2b691dc9846');
INSERT INTO lapwing.fingerprint VALUES ('files of clinic', 'clinic');
INSERT INTO lapwing.proposal VALUES ('36a399d95a6d5d077148b70479369894', 1, 'budget', '', 'olga', '{"account":"pure","delta":"0","delta_conversion":"0","delta_keys":"0","delta_total":"0","epsilon":"1/40000000000000","loss_total":"25"}', 25, 0, 'more', 'approved', 'piet');
INSERT INTO lapwing.proposal VALUES ('36a399d95a6d5d077148b70479369894', 2, 'ceiling', '', 'olga', '{"account":"pure","delta":"0","delta_conversion":"0","delta_keys":"0","delta_total":"0","epsilon":"1/25000000000000","loss_total":"40"}', 40, 0, 'still open', 'open', NULL);
INSERT INTO lapwing.worker VALUES ('c0f957ccef723710202d08bf9bcbb206', '36a399d95a6d5d077148b70479369894', 'a machine', 'a boot', 'a namespace', 18741, '164288', '2026-11-15 15:48:11.454092+00', NULL, NULL, 0);
ALTER TABLE ONLY lapwing.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY lapwing.analyst_group
    ADD CONSTRAINT analyst_group_pkey PRIMARY KEY (ledger_id, group_name);
ALTER TABLE ONLY lapwing.analyst
    ADD CONSTRAINT analyst_pkey PRIMARY KEY (ledger_id, analyst);
ALTER TABLE ONLY lapwing.charge
    ADD CONSTRAINT charge_ledger_id_analyst_request_id_key UNIQUE (ledger_id, analyst, request_id);
ALTER TABLE ONLY lapwing.charge
    ADD CONSTRAINT charge_pkey PRIMARY KEY (ledger_id, charge_id);
ALTER TABLE ONLY lapwing.data_set
    ADD CONSTRAINT data_set_pkey PRIMARY KEY (ledger_id);
ALTER TABLE ONLY lapwing.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (ledger_id, entry_id);
ALTER TABLE ONLY lapwing.fingerprint
    ADD CONSTRAINT fingerprint_pkey PRIMARY KEY (fingerprint, source_id);
ALTER TABLE ONLY lapwing.proposal
    ADD CONSTRAINT proposal_pkey PRIMARY KEY (ledger_id, proposal_id);
ALTER TABLE ONLY lapwing.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (epoch);
CREATE INDEX charge_by_digest ON lapwing.charge USING btree (ledger_id, digest, charge_id) WHERE (state = 'committed'::lapwing.charge_state);
CREATE INDEX charge_open ON lapwing.charge USING btree (ledger_id, epoch) WHERE (state = 'reserved'::lapwing.charge_state);
CREATE UNIQUE INDEX data_set_of_source ON lapwing.data_set USING btree (source_id) WHERE (NOT superseded);
CREATE UNIQUE INDEX entry_commits ON lapwing.entry USING btree (ledger_id, charge_id) WHERE (kind = 'commit'::text);
CREATE INDEX worker_active ON lapwing.worker USING btree (ledger_id) WHERE (ended_at IS NULL);
CREATE INDEX worker_lost ON lapwing.worker USING btree (ledger_id, ended_at) WHERE ((ended_how = 'lost'::text) AND (forfeited > 0));
CREATE TRIGGER charge_kept BEFORE DELETE ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER charge_moves_once BEFORE UPDATE OF state, payload, payload_digest ON lapwing.charge FOR EACH ROW WHEN (((old.state <> 'reserved'::lapwing.charge_state) OR (new.state = 'reserved'::lapwing.charge_state))) EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER charge_not_emptied BEFORE TRUNCATE ON lapwing.charge FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER charge_starts_reserved BEFORE INSERT ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.require_reserved();
CREATE TRIGGER charge_stays BEFORE UPDATE OF ledger_id, charge_id, analyst, group_name, request_id, digest, version, block, summary, loss, delta, epoch, nonce ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER data_set_changed BEFORE UPDATE OF budget, ceiling, loss_total, delta_total, loss_ceiling, delta_ceiling ON lapwing.data_set FOR EACH ROW WHEN (((new.budget <> old.budget) OR (new.ceiling <> old.ceiling) OR ((new.loss_total)::numeric <> (old.loss_total)::numeric) OR ((new.delta_total)::numeric <> (old.delta_total)::numeric) OR ((new.loss_ceiling)::numeric <> (old.loss_ceiling)::numeric) OR ((new.delta_ceiling)::numeric <> (old.delta_ceiling)::numeric))) EXECUTE FUNCTION lapwing.require_totals();
CREATE TRIGGER data_set_kept BEFORE DELETE ON lapwing.data_set FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER data_set_made BEFORE INSERT ON lapwing.data_set FOR EACH ROW EXECUTE FUNCTION lapwing.require_totals();
CREATE TRIGGER data_set_not_emptied BEFORE TRUNCATE ON lapwing.data_set FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER data_set_only_grows BEFORE UPDATE OF loss_spent, delta_spent, entries, charges ON lapwing.data_set FOR EACH ROW EXECUTE FUNCTION lapwing.require_growth();
CREATE TRIGGER data_set_stays BEFORE UPDATE OF ledger_id, source_id, loss_ceiling, delta_ceiling, superseded ON lapwing.data_set FOR EACH ROW WHEN (((new.ledger_id <> old.ledger_id) OR (new.source_id <> old.source_id) OR ((new.loss_ceiling)::numeric < (old.loss_ceiling)::numeric) OR ((new.delta_ceiling)::numeric < (old.delta_ceiling)::numeric) OR (old.superseded AND (NOT new.superseded)))) EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER entry_fixed BEFORE DELETE OR UPDATE ON lapwing.entry FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER entry_kept BEFORE TRUNCATE ON lapwing.entry FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER fingerprint_kept BEFORE DELETE OR UPDATE ON lapwing.fingerprint FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER proposal_decided_once BEFORE UPDATE ON lapwing.proposal FOR EACH ROW WHEN (((old.state <> 'open'::text) OR (new.state = 'open'::text) OR (new.proposed_by <> old.proposed_by) OR (new.budget <> old.budget) OR ((new.loss_total)::numeric <> (old.loss_total)::numeric) OR ((new.delta_total)::numeric <> (old.delta_total)::numeric) OR (new.kind <> old.kind) OR (new.target <> old.target))) EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER proposal_kept BEFORE DELETE ON lapwing.proposal FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER worker_ends_once BEFORE UPDATE ON lapwing.worker FOR EACH ROW WHEN (((old.ended_at IS NOT NULL) OR (new.epoch <> old.epoch) OR (new.ledger_id <> old.ledger_id))) EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER worker_kept BEFORE DELETE ON lapwing.worker FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
ALTER TABLE ONLY lapwing.analyst_group
    ADD CONSTRAINT analyst_group_ledger_id_fkey FOREIGN KEY (ledger_id) REFERENCES lapwing.data_set(ledger_id);
ALTER TABLE ONLY lapwing.analyst
    ADD CONSTRAINT analyst_ledger_id_fkey FOREIGN KEY (ledger_id) REFERENCES lapwing.data_set(ledger_id);
ALTER TABLE ONLY lapwing.analyst
    ADD CONSTRAINT analyst_ledger_id_group_name_fkey FOREIGN KEY (ledger_id, group_name) REFERENCES lapwing.analyst_group(ledger_id, group_name);
ALTER TABLE ONLY lapwing.proposal
    ADD CONSTRAINT proposal_ledger_id_fkey FOREIGN KEY (ledger_id) REFERENCES lapwing.data_set(ledger_id);
ALTER TABLE ONLY lapwing.worker
    ADD CONSTRAINT worker_ledger_id_fkey FOREIGN KEY (ledger_id) REFERENCES lapwing.data_set(ledger_id);
GRANT USAGE ON SCHEMA lapwing TO lapwing_app;
GRANT SELECT ON TABLE lapwing.data_set TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.accept_override(p_ledger_id text, p_detail text, p_fingerprint text, p_behind boolean, p_loss_lost numeric, p_delta_lost numeric, p_budget text, p_ceiling text, p_closed boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.accept_override(p_ledger_id text, p_detail text, p_fingerprint text, p_behind boolean, p_loss_lost numeric, p_delta_lost numeric, p_budget text, p_ceiling text, p_closed boolean) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.all_fit(ds lapwing.data_set, p_epoch text, p_analysts text[], p_request_ids text[], p_losses numeric[], p_deltas numeric[], p_today date) FROM PUBLIC;
GRANT SELECT ON TABLE lapwing.analyst TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.analyst_evidence(a lapwing.analyst) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.append(ds lapwing.data_set, p_kind text, p_analyst text, p_charge_id bigint, p_loss numeric, p_delta numeric, p_detail text, p_evidence text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.apply_budget(ds lapwing.data_set, p_budget text, p_detail text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.budget_outcome(ds lapwing.data_set, p_budget text, p_second boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.budgets_evidence(p_budget text, p_ceiling text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.chain(p_ledger_id text, p_entry_id bigint, p_head text, p_kind text, p_analyst text, p_charge_id bigint, p_loss numeric, p_delta numeric, p_detail text, p_evidence text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.commit(p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_digest text, p_loss numeric, p_delta numeric, p_payload bytea, OUT outcome text, OUT o_state text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.commit(p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_digest text, p_loss numeric, p_delta numeric, p_payload bytea, OUT outcome text, OUT o_state text[]) TO lapwing_app;
REVOKE ALL ON PROCEDURE lapwing.commit_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonce text, IN p_charge_id bigint, IN p_digest text, IN p_loss numeric, IN p_delta numeric, IN p_payload bytea, OUT outcome text, OUT o_state text[]) FROM PUBLIC;
GRANT ALL ON PROCEDURE lapwing.commit_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonce text, IN p_charge_id bigint, IN p_digest text, IN p_loss numeric, IN p_delta numeric, IN p_payload bytea, OUT outcome text, OUT o_state text[]) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.create_data_set(p_ledger_id text, p_source_id text, p_fingerprint text, p_budget text, p_ceiling text, p_by text, p_override text, OUT outcome text, OUT known text[], OUT state lapwing.data_set) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.create_data_set(p_ledger_id text, p_source_id text, p_fingerprint text, p_budget text, p_ceiling text, p_by text, p_override text, OUT outcome text, OUT known text[], OUT state lapwing.data_set) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.decide(p_ledger_id text, p_proposal_id bigint, p_by text, p_approve boolean, p_seen text, p_reason text, OUT outcome text, OUT state lapwing.data_set) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.decide(p_ledger_id text, p_proposal_id bigint, p_by text, p_approve boolean, p_seen text, p_reason text, OUT outcome text, OUT state lapwing.data_set) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.digest(VARIADIC fields text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.disconnect_worker(p_ledger_id text, p_epoch text) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.disconnect_worker(p_ledger_id text, p_epoch text) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.end_worker(ds lapwing.data_set, p_epoch text, p_how text, p_detail text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.find_answer(p_ledger_id text, p_digest text, p_analyst text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.find_answer(p_ledger_id text, p_digest text, p_analyst text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.forfeit(p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_incident boolean, OUT outcome text, OUT state lapwing.data_set) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.forfeit(p_ledger_id text, p_epoch text, p_nonce text, p_charge_id bigint, p_incident boolean, OUT outcome text, OUT state lapwing.data_set) TO lapwing_app;
GRANT SELECT ON TABLE lapwing.analyst_group TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.group_evidence(g lapwing.analyst_group) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.limits_evidence(ds lapwing.data_set) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.locked(p_ledger_id text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.propose(p_ledger_id text, p_kind text, p_target text, p_by text, p_budget text, p_loss_total numeric, p_delta_total numeric, p_reason text, OUT outcome text, OUT o_proposal_id bigint, OUT state lapwing.data_set) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.propose(p_ledger_id text, p_kind text, p_target text, p_by text, p_budget text, p_loss_total numeric, p_delta_total numeric, p_reason text, OUT outcome text, OUT o_proposal_id bigint, OUT state lapwing.data_set) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.record(p_ledger_id text, p_kind text, p_detail text) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.record(p_ledger_id text, p_kind text, p_detail text) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.refuse_change() FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.register_worker(p_ledger_id text, p_epoch text, p_host text, p_boot text, p_namespace text, p_pid bigint, p_started text, p_lease_seconds integer, p_dead text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.register_worker(p_ledger_id text, p_epoch text, p_host text, p_boot text, p_namespace text, p_pid bigint, p_started text, p_lease_seconds integer, p_dead text[]) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.renew_worker(p_epoch text, p_lease_seconds integer) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.renew_worker(p_epoch text, p_lease_seconds integer) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.replay(ds lapwing.data_set, p_charge_id bigint, p_epoch text, p_nonce text, p_digest text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.require_durable() FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.require_durable() TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.require_growth() FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.require_reserved() FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.require_totals() FROM PUBLIC;
REVOKE ALL ON FUNCTION lapwing.reserve(p_ledger_id text, p_epoch text, p_nonce text, p_analyst text, p_request_id text, p_digest text, p_version bigint, p_summary text, p_loss numeric, p_delta numeric, p_anchor_entries bigint, p_anchor_head text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.reserve(p_ledger_id text, p_epoch text, p_nonce text, p_analyst text, p_request_id text, p_digest text, p_version bigint, p_summary text, p_loss numeric, p_delta numeric, p_anchor_entries bigint, p_anchor_head text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) TO lapwing_app;
REVOKE ALL ON PROCEDURE lapwing.reserve_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonce text, IN p_analyst text, IN p_request_id text, IN p_digest text, IN p_version bigint, IN p_summary text, IN p_loss numeric, IN p_delta numeric, IN p_anchor_entries bigint, IN p_anchor_head text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) FROM PUBLIC;
GRANT ALL ON PROCEDURE lapwing.reserve_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonce text, IN p_analyst text, IN p_request_id text, IN p_digest text, IN p_version bigint, IN p_summary text, IN p_loss numeric, IN p_delta numeric, IN p_anchor_entries bigint, IN p_anchor_head text, OUT outcome text, OUT o_charge_id bigint, OUT o_payload bytea, OUT o_payload_digest text, OUT o_state text[]) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.reserve_many(p_ledger_id text, p_epoch text, p_nonces text[], p_analysts text[], p_request_ids text[], p_digests text[], p_versions bigint[], p_summaries text[], p_losses numeric[], p_deltas numeric[], p_anchor_entries bigint, p_anchor_head text, OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.reserve_many(p_ledger_id text, p_epoch text, p_nonces text[], p_analysts text[], p_request_ids text[], p_digests text[], p_versions bigint[], p_summaries text[], p_losses numeric[], p_deltas numeric[], p_anchor_entries bigint, p_anchor_head text, OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[]) TO lapwing_app;
REVOKE ALL ON PROCEDURE lapwing.reserve_many_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonces text[], IN p_analysts text[], IN p_request_ids text[], IN p_digests text[], IN p_versions bigint[], IN p_summaries text[], IN p_losses numeric[], IN p_deltas numeric[], IN p_anchor_entries bigint, IN p_anchor_head text, OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[]) FROM PUBLIC;
GRANT ALL ON PROCEDURE lapwing.reserve_many_durably(IN p_ledger_id text, IN p_epoch text, IN p_nonces text[], IN p_analysts text[], IN p_request_ids text[], IN p_digests text[], IN p_versions bigint[], IN p_summaries text[], IN p_losses numeric[], IN p_deltas numeric[], IN p_anchor_entries bigint, IN p_anchor_head text, OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[]) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.set_analyst(p_ledger_id text, p_analyst text, p_group text, p_suspended boolean, p_loss_total numeric, p_delta_total numeric, p_day_loss_max numeric, p_detail text, OUT outcome text, OUT state lapwing.data_set) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.set_analyst(p_ledger_id text, p_analyst text, p_group text, p_suspended boolean, p_loss_total numeric, p_delta_total numeric, p_day_loss_max numeric, p_detail text, OUT outcome text, OUT state lapwing.data_set) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.set_budget(p_ledger_id text, p_seen text, p_budget text, p_detail text, OUT outcome text, OUT state lapwing.data_set) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.set_budget(p_ledger_id text, p_seen text, p_budget text, p_detail text, OUT outcome text, OUT state lapwing.data_set) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.set_closed(p_ledger_id text, p_closed boolean, p_detail text) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.set_closed(p_ledger_id text, p_closed boolean, p_detail text) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.set_group(p_ledger_id text, p_group text, p_loss_total numeric, p_delta_total numeric, p_detail text, OUT outcome text, OUT state lapwing.data_set) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.set_group(p_ledger_id text, p_group text, p_loss_total numeric, p_delta_total numeric, p_detail text, OUT outcome text, OUT state lapwing.data_set) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.set_limits(p_ledger_id text, p_statement_loss_max numeric, p_day_loss_max numeric, p_answers_shared boolean, p_lost_workers_max integer, p_lost_workers_seconds integer, p_detail text) FROM PUBLIC;
GRANT ALL ON FUNCTION lapwing.set_limits(p_ledger_id text, p_statement_loss_max numeric, p_day_loss_max numeric, p_answers_shared boolean, p_lost_workers_max integer, p_lost_workers_seconds integer, p_detail text) TO lapwing_app;
REVOKE ALL ON FUNCTION lapwing.state_texts(ds lapwing.data_set) FROM PUBLIC;
REVOKE ALL ON PROCEDURE lapwing.wait_for_disk() FROM PUBLIC;
GRANT ALL ON PROCEDURE lapwing.wait_for_disk() TO lapwing_app;
GRANT SELECT ON TABLE lapwing.alembic_version TO lapwing_app;
GRANT SELECT ON TABLE lapwing.charge TO lapwing_app;
GRANT SELECT ON TABLE lapwing.entry TO lapwing_app;
GRANT SELECT ON TABLE lapwing.fingerprint TO lapwing_app;
GRANT SELECT ON TABLE lapwing.proposal TO lapwing_app;
GRANT SELECT ON TABLE lapwing.worker TO lapwing_app;
