-- Many reservations, or many answers, in one statement, for one data set or for several that a process uses. They share one disk write.
--
-- Requests that certainly fit are charged together, and each table is written once. Costs are not negative, so lapwing.reserve would have
-- charged each of them too, in any order. A data set with blocks of time is never charged here. If it is not certain that all requests of a data set fit, none of them is charged here:
-- lapwing.reserve decides on each in turn. Either way the outcomes are those of single reservations.

-- Charge the requests to those data sets for which all requests fit; the caller holds their locks (p_held). A request that was not charged
-- has no number. Returns the state of each data set that was charged.
CREATE FUNCTION lapwing.charge_all(
    p_held text[], p_ledger_ids text[], p_epochs text[], p_anchor_entries bigint[], p_anchor_heads text[], p_nonces text[], p_analysts text[],
    p_request_ids text[], p_digests text[], p_versions bigint[], p_summaries text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[],
    p_purchases text[], OUT o_charge_ids bigint[], OUT o_states text[]
) LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    today date := (moment AT TIME ZONE 'UTC')::date;
    stamp text := lapwing.stamp(moment);
    n integer := cardinality(p_ledger_ids);
    entry_ids bigint[] := array_fill(NULL::bigint, ARRAY[n]);
    groups text[] := array_fill(NULL::text, ARRAY[n]);
    nonces text[] := groups;
    evidence text[] := groups;
    heads text[] := groups;
    head text;
    one record;
BEGIN
    o_charge_ids := entry_ids;
    FOR one IN
        -- LATERAL with a LIMIT: one index lookup for each. As a plain join it may be planned as one pass over all past charges.
        WITH asked AS (
            SELECT r.i, r.ledger_id, r.analyst, r.request_id, r.loss, r.delta, r.pure, a.group_name, d.charges, d.entries, d.head,
                d.loss_spent, d.delta_spent, d.pure_spent, d.loss_total, d.delta_total, d.pure_total, d.day_loss_max, d.day_pure_max,
                CASE WHEN d.day >= today THEN d.day_loss ELSE 0 END AS day_loss, CASE WHEN d.day >= today THEN d.day_pure ELSE 0 END AS day_pure,
                a.loss_spent AS a_loss_spent, a.delta_spent AS a_delta_spent, a.pure_spent AS a_pure_spent, a.loss_total AS a_loss_total,
                a.delta_total AS a_delta_total, a.pure_total AS a_pure_total, a.day_loss_max AS a_day_loss_max, a.day_pure_max AS a_day_pure_max,
                CASE WHEN a.day >= today THEN a.day_loss ELSE 0 END AS a_day_loss,
                CASE WHEN a.day >= today THEN a.day_pure ELSE 0 END AS a_day_pure,
                g.loss_spent AS g_loss_spent, g.delta_spent AS g_delta_spent, g.pure_spent AS g_pure_spent, g.loss_total AS g_loss_total,
                g.delta_total AS g_delta_total, g.pure_total AS g_pure_total,
                d.blocks_every IS NULL AND NOT d.superseded AND NOT d.closed AND w.epoch IS NOT NULL AND a.analyst IS NOT NULL AND c.charge_id IS NULL
                    AND r.loss > 0 AND r.delta >= 0 AND (r.pure >= 0) IS NOT FALSE
                    AND NOT lapwing.exceeds(r.loss, r.pure, d.statement_loss_max, d.statement_pure_max)
                    -- The chain must have the entry that the caller knows; a caller that knows none passes 0.
                    AND (r.anchor_entries = 0 OR r.anchor_head = d.head OR EXISTS (SELECT FROM lapwing.entry e
                        WHERE e.ledger_id = r.ledger_id AND e.entry_id = r.anchor_entries AND e.chained = r.anchor_head)) AS fits_alone
            FROM unnest(p_ledger_ids, p_epochs, p_anchor_entries, p_anchor_heads, p_analysts, p_request_ids, p_losses, p_deltas, p_pures)
                WITH ORDINALITY AS r (ledger_id, epoch, anchor_entries, anchor_head, analyst, request_id, loss, delta, pure, i)
            CROSS JOIN LATERAL (SELECT * FROM lapwing.data_set WHERE ledger_id = r.ledger_id AND r.ledger_id = ANY (p_held) LIMIT 1) AS d
            LEFT JOIN LATERAL (SELECT epoch FROM lapwing.worker
                WHERE epoch = r.epoch AND ledger_id = r.ledger_id AND ended_at IS NULL AND anchors = d.anchors LIMIT 1) AS w ON true
            LEFT JOIN LATERAL (SELECT * FROM lapwing.analyst
                WHERE ledger_id = r.ledger_id AND analyst = r.analyst AND NOT suspended LIMIT 1) AS a ON true
            LEFT JOIN LATERAL (SELECT * FROM lapwing.analyst_group
                WHERE ledger_id = r.ledger_id AND group_name = a.group_name LIMIT 1) AS g ON true
            LEFT JOIN LATERAL (SELECT charge_id FROM lapwing.charge
                WHERE ledger_id = r.ledger_id AND analyst = r.analyst AND request_id = r.request_id LIMIT 1) AS c ON true
        ), added AS (
            -- Sums of the requests to a data set, by an analyst, by a group. A sum of pure amounts is NULL if one of them is: sum() alone
            -- would skip it.
            SELECT *, row_number() OVER (PARTITION BY ledger_id ORDER BY i) AS place,
                count(*) OVER (PARTITION BY ledger_id, analyst, request_id) AS of_key,
                sum(loss) OVER of_all AS loss_of_all, sum(delta) OVER of_all AS delta_of_all,
                CASE WHEN count(pure) OVER of_all = count(*) OVER of_all THEN sum(pure) OVER of_all END AS pure_of_all,
                sum(loss) OVER of_analyst AS loss_of_analyst, sum(delta) OVER of_analyst AS delta_of_analyst,
                CASE WHEN count(pure) OVER of_analyst = count(*) OVER of_analyst THEN sum(pure) OVER of_analyst END AS pure_of_analyst,
                sum(loss) OVER of_group AS loss_of_group, sum(delta) OVER of_group AS delta_of_group,
                CASE WHEN count(pure) OVER of_group = count(*) OVER of_group THEN sum(pure) OVER of_group END AS pure_of_group
            FROM asked
            WINDOW of_all AS (PARTITION BY ledger_id), of_analyst AS (PARTITION BY ledger_id, analyst),
                of_group AS (PARTITION BY ledger_id, group_name)
        ), decided AS (
            -- A comparison with a limit of NULL is not false: NULL is no limit.
            SELECT *, bool_and((fits_alone AND of_key = 1
                AND NOT lapwing.exceeds(day_loss + loss_of_all, day_pure + pure_of_all, day_loss_max, day_pure_max)
                AND NOT lapwing.exceeds(a_day_loss + loss_of_analyst, a_day_pure + pure_of_analyst, a_day_loss_max, a_day_pure_max)
                AND NOT lapwing.exceeds(a_loss_spent + loss_of_analyst, a_pure_spent + pure_of_analyst, a_loss_total, a_pure_total)
                AND (a_delta_spent + delta_of_analyst <= a_delta_total) IS NOT FALSE
                AND NOT lapwing.exceeds(g_loss_spent + loss_of_group, g_pure_spent + pure_of_group, g_loss_total, g_pure_total)
                AND (g_delta_spent + delta_of_group <= g_delta_total) IS NOT FALSE
                AND NOT lapwing.exceeds(loss_spent + loss_of_all, pure_spent + pure_of_all, loss_total, pure_total)
                AND delta_spent + delta_of_all <= delta_total) IS TRUE) OVER (PARTITION BY ledger_id) AS fits
            FROM added
        )
        SELECT i, place, group_name, charges + place AS charge_id, entries + place AS entry_id, decided.head
        FROM decided WHERE fits ORDER BY ledger_id, place
    LOOP
        IF one.place = 1 THEN
            head := one.head;
        END IF;
        o_charge_ids[one.i] := one.charge_id;
        entry_ids[one.i] := one.entry_id;
        groups[one.i] := one.group_name;
        nonces[one.i] := lapwing.digest(p_nonces[one.i]);
        evidence[one.i] := lapwing.digest(VARIADIC lapwing.with_later(ARRAY[one.charge_id::text, p_analysts[one.i], one.group_name,
            p_request_ids[one.i], p_digests[one.i], p_versions[one.i]::text, '', p_summaries[one.i], p_losses[one.i]::text,
            p_deltas[one.i]::text, p_epochs[one.i], nonces[one.i]],
            VARIADIC lapwing.later_of_charge(p_pures[one.i]::text, p_purchases[one.i])));
        head := lapwing.digest(VARIADIC lapwing.with_later(ARRAY[head, one.entry_id::text, stamp, 'reserve', p_analysts[one.i],
            one.charge_id::text, p_losses[one.i]::text, p_deltas[one.i]::text, p_summaries[one.i], evidence[one.i]], p_pures[one.i]::text));
        heads[one.i] := head;
    END LOOP;
    IF head IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO lapwing.charge (ledger_id, charge_id, analyst, group_name, request_id, digest, version, summary, loss, delta, pure, purchase, epoch,
            nonce)
        SELECT r.ledger_id, r.charge_id, r.analyst, r.group_name, r.request_id, r.digest, r.version, r.summary, r.loss, r.delta, r.pure,
            r.purchase, r.epoch, r.nonce
        FROM unnest(p_ledger_ids, o_charge_ids, p_analysts, groups, p_request_ids, p_digests, p_versions, p_summaries, p_losses, p_deltas,
                p_pures, p_purchases, p_epochs, nonces)
            AS r (ledger_id, charge_id, analyst, group_name, request_id, digest, version, summary, loss, delta, pure, purchase, epoch, nonce)
        WHERE r.charge_id IS NOT NULL;
    INSERT INTO lapwing.entry (ledger_id, entry_id, at, kind, analyst, charge_id, loss, delta, pure, detail, evidence, chained)
        SELECT r.ledger_id, r.entry_id, stamp, 'reserve', r.analyst, r.charge_id, r.loss, r.delta, r.pure, r.summary, r.evidence, r.head
        FROM unnest(p_ledger_ids, entry_ids, o_charge_ids, p_analysts, p_losses, p_deltas, p_pures, p_summaries, evidence, heads)
            AS r (ledger_id, entry_id, charge_id, analyst, loss, delta, pure, summary, evidence, head)
        WHERE r.charge_id IS NOT NULL;
    UPDATE lapwing.analyst AS a SET loss_spent = a.loss_spent + s.loss, delta_spent = a.delta_spent + s.delta,
            pure_spent = a.pure_spent + s.pure, day = greatest(a.day, today),
            day_loss = s.loss + CASE WHEN a.day >= today THEN a.day_loss ELSE 0 END,
            day_pure = s.pure + CASE WHEN a.day >= today THEN a.day_pure ELSE 0 END
        FROM (SELECT r.ledger_id, r.analyst, sum(r.loss) AS loss, sum(r.delta) AS delta,
                CASE WHEN count(r.pure) = count(*) THEN sum(r.pure) END AS pure
            FROM unnest(p_ledger_ids, o_charge_ids, p_analysts, p_losses, p_deltas, p_pures) AS r (ledger_id, charge_id, analyst, loss, delta, pure)
            WHERE r.charge_id IS NOT NULL GROUP BY r.ledger_id, r.analyst) AS s
        WHERE a.ledger_id = s.ledger_id AND a.analyst = s.analyst;
    IF array_remove(groups, NULL) <> '{}' THEN
        UPDATE lapwing.analyst_group AS g SET loss_spent = g.loss_spent + s.loss, delta_spent = g.delta_spent + s.delta,
                pure_spent = g.pure_spent + s.pure
            FROM (SELECT r.ledger_id, r.group_name, sum(r.loss) AS loss, sum(r.delta) AS delta,
                    CASE WHEN count(r.pure) = count(*) THEN sum(r.pure) END AS pure
                FROM unnest(p_ledger_ids, o_charge_ids, groups, p_losses, p_deltas, p_pures) AS r (ledger_id, charge_id, group_name, loss, delta, pure)
                WHERE r.charge_id IS NOT NULL GROUP BY r.ledger_id, r.group_name) AS s
            WHERE g.ledger_id = s.ledger_id AND g.group_name = s.group_name;
    END IF;
    WITH changed AS (
        UPDATE lapwing.data_set AS d SET loss_spent = d.loss_spent + s.loss, delta_spent = d.delta_spent + s.delta,
                pure_spent = d.pure_spent + s.pure, entries = d.entries + s.charged, charges = d.charges + s.charged, head = s.head,
                day = greatest(d.day, today), anchored = greatest(d.anchored, s.anchored),
                day_loss = s.loss + CASE WHEN d.day >= today THEN d.day_loss ELSE 0 END,
                day_pure = s.pure + CASE WHEN d.day >= today THEN d.day_pure ELSE 0 END
            FROM (SELECT r.ledger_id, count(*) AS charged, sum(r.loss) AS loss, sum(r.delta) AS delta,
                    CASE WHEN count(r.pure) = count(*) THEN sum(r.pure) END AS pure, max(r.anchor_entries) AS anchored,
                    (array_agg(r.head ORDER BY r.charge_id DESC))[1] AS head
                FROM unnest(p_ledger_ids, o_charge_ids, p_losses, p_deltas, p_pures, p_anchor_entries, heads)
                    AS r (ledger_id, charge_id, loss, delta, pure, anchor_entries, head)
                WHERE r.charge_id IS NOT NULL GROUP BY r.ledger_id) AS s
            WHERE d.ledger_id = s.ledger_id
            RETURNING lapwing.state_texts(d) AS texts)
    SELECT array_agg(texts) INTO o_states FROM changed;
END $$;

-- Many reservations of one worker for one data set.
CREATE FUNCTION lapwing.reserve_many(
    p_ledger_id text, p_epoch text, p_nonces text[], p_analysts text[], p_request_ids text[], p_digests text[], p_versions bigint[],
    p_summaries text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[], p_anchor_entries bigint, p_anchor_head text,
    p_purchases text[], OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[],
    p_blocks text[] DEFAULT NULL
) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    n integer := cardinality(p_nonces);
    states text[];
    one record;
BEGIN
    SELECT r.* INTO o_charge_ids, states
        FROM lapwing.charge_all(ARRAY[p_ledger_id], array_fill(p_ledger_id, ARRAY[n]), array_fill(p_epoch, ARRAY[n]),
            array_fill(p_anchor_entries, ARRAY[n]), array_fill(p_anchor_head, ARRAY[n]), p_nonces, p_analysts, p_request_ids, p_digests,
            p_versions, p_summaries, p_losses, p_deltas, p_pures, p_purchases) AS r;
    IF states IS NOT NULL THEN
        outcomes := array_fill('permit'::text, ARRAY[n]);
        o_state := ARRAY(SELECT unnest(states));
        RETURN;
    END IF;
    FOR i IN 1..n LOOP
        SELECT r.* INTO one FROM lapwing.reserve(p_ledger_id, p_epoch, p_nonces[i], p_analysts[i], p_request_ids[i], p_digests[i],
            p_versions[i], p_summaries[i], p_losses[i], p_deltas[i], p_pures[i], p_anchor_entries, p_anchor_head, p_purchases[i], p_blocks[i]) AS r;
        outcomes[i] := one.outcome;
        o_charge_ids[i] := one.o_charge_id;
        o_payloads[i] := one.o_payload;
        o_payload_digests[i] := one.o_payload_digest;
        o_state := coalesce(one.o_state, o_state);
    END LOOP;
END $$;

-- Locks the rows of several data sets, in a fixed order, so that two callers do not deadlock. Returns the data sets that it has locked: all that
-- exist or, without p_wait, all that no one else has locked. A wait is short: other statements take less time, and a data set that is locked
-- for longer must not delay the others.
CREATE FUNCTION lapwing.locked_of(p_ledger_ids text[], p_wait boolean) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE held text[];
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM set_config('lock_timeout', '100ms', true);
    IF p_wait THEN
        SELECT array_agg(l.ledger_id) INTO held FROM (SELECT ledger_id FROM lapwing.data_set WHERE ledger_id = ANY (p_ledger_ids)
            ORDER BY ledger_id FOR NO KEY UPDATE) AS l;
    ELSE
        SELECT array_agg(l.ledger_id) INTO held FROM (SELECT ledger_id FROM lapwing.data_set WHERE ledger_id = ANY (p_ledger_ids)
            ORDER BY ledger_id FOR NO KEY UPDATE SKIP LOCKED) AS l;
    END IF;
    RETURN held;
END $$;

-- Reservations of several data sets. A request that is not charged here is not refused either: it has no number, and its caller reserves for
-- that data set alone. This applies to a data set that is unknown, locked, or whose requests do not all certainly fit; and to all data sets
-- if one is damaged, so that a rule of a table or the server itself stops the statement.
CREATE FUNCTION lapwing.reserve_across(
    p_ledger_ids text[], p_epochs text[], p_anchor_entries bigint[], p_anchor_heads text[], p_nonces text[], p_analysts text[],
    p_request_ids text[], p_digests text[], p_versions bigint[], p_summaries text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[],
    p_purchases text[], OUT o_charge_ids bigint[], OUT o_states text[]
) LANGUAGE plpgsql AS $$
DECLARE held text[];
BEGIN
    FOR attempt IN 1..2 LOOP
        BEGIN  -- locks and changes end together: a failed attempt leaves nothing
            held := lapwing.locked_of(p_ledger_ids, attempt = 1);
            IF held IS NULL THEN
                RETURN;
            ELSIF cardinality(p_ledger_ids) = 1 THEN  -- half the work
                SELECT ARRAY[r.o_charge_id], ARRAY[r.o_state] INTO o_charge_ids, o_states
                    FROM lapwing.reserve(p_ledger_ids[1], p_epochs[1], p_nonces[1], p_analysts[1], p_request_ids[1], p_digests[1], p_versions[1],
                        p_summaries[1], p_losses[1], p_deltas[1], p_pures[1], p_anchor_entries[1], p_anchor_heads[1], p_purchases[1]) AS r
                    WHERE r.outcome = 'permit';
            ELSE
                SELECT r.* INTO o_charge_ids, o_states
                    FROM lapwing.charge_all(held, p_ledger_ids, p_epochs, p_anchor_entries, p_anchor_heads, p_nonces, p_analysts, p_request_ids,
                        p_digests, p_versions, p_summaries, p_losses, p_deltas, p_pures, p_purchases) AS r;
            END IF;
            RETURN;
        EXCEPTION
            WHEN lock_not_available THEN
                NULL;
            WHEN OTHERS THEN
                RETURN;
        END;
    END LOOP;
END $$;

CREATE PROCEDURE lapwing.reserve_many_durably(
    p_ledger_id text, p_epoch text, p_nonces text[], p_analysts text[], p_request_ids text[], p_digests text[], p_versions bigint[],
    p_summaries text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[], p_anchor_entries bigint, p_anchor_head text,
    p_purchases text[], OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[],
    p_blocks text[] DEFAULT NULL
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true),
        pg_catalog.set_config('lapwing.flush_follows', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    SELECT r.* INTO outcomes, o_charge_ids, o_payloads, o_payload_digests, o_state
        FROM lapwing.reserve_many(p_ledger_id, p_epoch, p_nonces, p_analysts, p_request_ids, p_digests, p_versions, p_summaries, p_losses,
            p_deltas, p_pures, p_anchor_entries, p_anchor_head, p_purchases, p_blocks) AS r;
    COMMIT;  -- both settings end here
    CALL lapwing.wait_for_disk();
END $$;

CREATE PROCEDURE lapwing.reserve_across_durably(
    p_ledger_ids text[], p_epochs text[], p_anchor_entries bigint[], p_anchor_heads text[], p_nonces text[], p_analysts text[],
    p_request_ids text[], p_digests text[], p_versions bigint[], p_summaries text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[],
    p_purchases text[], OUT o_charge_ids bigint[], OUT o_states text[]
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true),
        pg_catalog.set_config('lapwing.flush_follows', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    SELECT r.* INTO o_charge_ids, o_states
        FROM lapwing.reserve_across(p_ledger_ids, p_epochs, p_anchor_entries, p_anchor_heads, p_nonces, p_analysts, p_request_ids, p_digests,
            p_versions, p_summaries, p_losses, p_deltas, p_pures, p_purchases) AS r;
    COMMIT;  -- both settings end here
    CALL lapwing.wait_for_disk();
END $$;

-- Settle the answers of those data sets whose charges are all open to their workers, with none named twice, and whose chain has the entry that
-- the caller knows (so that the caller need not check it before it anchors the new state); the caller holds their locks (p_held). Returns which
-- answers were settled, and the states of their data sets.
CREATE FUNCTION lapwing.settle_all(
    p_held text[], p_ledger_ids text[], p_epochs text[], p_anchor_entries bigint[], p_anchor_heads text[], p_nonces text[],
    p_charge_ids bigint[], p_digests text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[], p_payloads bytea[], OUT o_done boolean[], OUT o_states text[]
) LANGUAGE plpgsql AS $$
DECLARE
    stamp text := lapwing.stamp(clock_timestamp());
    n integer := cardinality(p_ledger_ids);
    analysts text[] := array_fill(NULL::text, ARRAY[n]);
    entry_ids bigint[] := array_fill(NULL::bigint, ARRAY[n]);
    hashes text[] := analysts;
    heads text[] := analysts;
    head text;
    one record;
BEGIN
    o_done := array_fill(false, ARRAY[n]);
    FOR one IN
        -- LATERAL with a LIMIT: one look into an index for each, as in lapwing.charge_all.
        WITH answered AS (
            SELECT r.i, r.ledger_id, r.hashed, d.entries, d.head, c.analyst,
                row_number() OVER (PARTITION BY r.ledger_id ORDER BY r.i) AS place,
                count(*) OVER (PARTITION BY r.ledger_id, r.charge_id) = 1 AND c.analyst IS NOT NULL AND w.epoch IS NOT NULL
                    AND NOT d.superseded
                    AND (r.anchor_entries = 0 OR r.anchor_head = d.head OR EXISTS (SELECT FROM lapwing.entry e
                        WHERE e.ledger_id = r.ledger_id AND e.entry_id = r.anchor_entries AND e.chained = r.anchor_head)) AS is_open
            FROM (SELECT u.*, encode(sha256(u.payload), 'hex') AS hashed
                FROM unnest(p_ledger_ids, p_epochs, p_anchor_entries, p_anchor_heads, p_nonces, p_charge_ids, p_digests, p_losses, p_deltas, p_pures,
                    p_payloads) WITH ORDINALITY
                    AS u (ledger_id, epoch, anchor_entries, anchor_head, nonce, charge_id, digest, loss, delta, pure, payload, i)) AS r
            CROSS JOIN LATERAL (SELECT * FROM lapwing.data_set WHERE ledger_id = r.ledger_id AND r.ledger_id = ANY (p_held) LIMIT 1) AS d
            LEFT JOIN LATERAL (SELECT epoch FROM lapwing.worker WHERE epoch = r.epoch AND ended_at IS NULL LIMIT 1) AS w ON true
            LEFT JOIN LATERAL (SELECT o.analyst FROM lapwing.charge o
                WHERE o.ledger_id = r.ledger_id AND o.charge_id = r.charge_id AND o.epoch = r.epoch AND o.nonce = lapwing.digest(r.nonce)
                    AND o.digest = r.digest AND o.loss = r.loss AND o.delta = r.delta AND o.pure IS NOT DISTINCT FROM r.pure
                    AND o.state = 'reserved' LIMIT 1) AS c ON true
        ), decided AS (
            SELECT *, bool_and(is_open IS TRUE) OVER (PARTITION BY ledger_id) AS all_open FROM answered
        )
        SELECT i, place, entries + place AS entry_id, decided.head, analyst, hashed FROM decided WHERE all_open ORDER BY ledger_id, place
    LOOP
        IF one.place = 1 THEN
            head := one.head;
        END IF;
        o_done[one.i] := true;
        entry_ids[one.i] := one.entry_id;
        analysts[one.i] := one.analyst;
        hashes[one.i] := one.hashed;
        head := lapwing.digest(head, one.entry_id::text, stamp, 'commit', one.analyst, p_charge_ids[one.i]::text, '0', '0', '', one.hashed);
        heads[one.i] := head;
    END LOOP;
    IF head IS NULL THEN
        RETURN;
    END IF;
    UPDATE lapwing.charge AS c SET state = 'committed', payload = r.payload, payload_digest = r.hashed
        FROM unnest(p_ledger_ids, entry_ids, p_charge_ids, p_payloads, hashes) AS r (ledger_id, entry_id, charge_id, payload, hashed)
        WHERE r.entry_id IS NOT NULL AND c.ledger_id = r.ledger_id AND c.charge_id = r.charge_id;
    INSERT INTO lapwing.entry (ledger_id, entry_id, at, kind, analyst, charge_id, loss, delta, pure, detail, evidence, chained)
        SELECT r.ledger_id, r.entry_id, stamp, 'commit', r.analyst, r.charge_id, 0, 0, NULL, '', r.hashed, r.head
        FROM unnest(p_ledger_ids, entry_ids, p_charge_ids, analysts, hashes, heads) AS r (ledger_id, entry_id, charge_id, analyst, hashed, head)
        WHERE r.entry_id IS NOT NULL;
    WITH changed AS (
        UPDATE lapwing.data_set AS d SET entries = d.entries + s.settled, head = s.head
            FROM (SELECT r.ledger_id, count(*) AS settled, (array_agg(r.head ORDER BY r.entry_id DESC))[1] AS head
                FROM unnest(p_ledger_ids, entry_ids, heads) AS r (ledger_id, entry_id, head)
                WHERE r.entry_id IS NOT NULL GROUP BY r.ledger_id) AS s
            WHERE d.ledger_id = s.ledger_id
            RETURNING lapwing.state_texts(d) AS texts)
    SELECT array_agg(texts) INTO o_states FROM changed;
END $$;

-- Many answers of one worker for one data set. If this worker may not commit all of them, lapwing.commit decides on each in turn. Either way the
-- outcomes are those of single calls, in this order.
CREATE FUNCTION lapwing.commit_many(
    p_ledger_id text, p_epoch text, p_nonces text[], p_charge_ids bigint[], p_digests text[], p_losses numeric[], p_deltas numeric[],
    p_pures numeric[], p_payloads bytea[], OUT outcomes text[], OUT o_state text[]
) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    n integer := cardinality(p_nonces);
    states text[];
    one record;
BEGIN
    SELECT r.o_states INTO states
        FROM lapwing.settle_all(ARRAY[p_ledger_id], array_fill(p_ledger_id, ARRAY[n]), array_fill(p_epoch, ARRAY[n]),
            array_fill(0::bigint, ARRAY[n]), array_fill(''::text, ARRAY[n]), p_nonces, p_charge_ids, p_digests, p_losses, p_deltas, p_pures, p_payloads) AS r;
    IF states IS NOT NULL THEN
        outcomes := array_fill('done'::text, ARRAY[n]);
        o_state := ARRAY(SELECT unnest(states));
        RETURN;
    END IF;
    FOR i IN 1..n LOOP
        SELECT r.* INTO one FROM lapwing.commit(p_ledger_id, p_epoch, p_nonces[i], p_charge_ids[i], p_digests[i], p_losses[i], p_deltas[i],
            p_pures[i], p_payloads[i]) AS r;
        outcomes[i] := one.outcome;
        o_state := coalesce(one.o_state, o_state);
    END LOOP;
END $$;

-- Answers of several data sets, as lapwing.reserve_across: an answer not settled here is not refused; its caller commits for that data set alone.
CREATE FUNCTION lapwing.commit_across(
    p_ledger_ids text[], p_epochs text[], p_anchor_entries bigint[], p_anchor_heads text[], p_nonces text[], p_charge_ids bigint[],
    p_digests text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[], p_payloads bytea[], OUT o_done boolean[], OUT o_states text[]
) LANGUAGE plpgsql AS $$
DECLARE held text[];
BEGIN
    FOR attempt IN 1..2 LOOP
        BEGIN
            held := lapwing.locked_of(p_ledger_ids, attempt = 1);
            IF held IS NULL THEN
                RETURN;
            ELSIF cardinality(p_ledger_ids) = 1 THEN
                SELECT ARRAY[true], ARRAY[r.o_state] INTO o_done, o_states
                    FROM lapwing.commit(p_ledger_ids[1], p_epochs[1], p_nonces[1], p_charge_ids[1], p_digests[1], p_losses[1], p_deltas[1],
                        p_pures[1], p_payloads[1]) AS r
                    WHERE r.outcome = 'done' AND lapwing.has_entry(p_ledger_ids[1], p_anchor_entries[1], p_anchor_heads[1]);
            ELSE
                SELECT r.* INTO o_done, o_states
                    FROM lapwing.settle_all(held, p_ledger_ids, p_epochs, p_anchor_entries, p_anchor_heads, p_nonces, p_charge_ids, p_digests,
                        p_losses, p_deltas, p_pures, p_payloads) AS r;
            END IF;
            RETURN;
        EXCEPTION
            WHEN lock_not_available THEN
                NULL;
            WHEN OTHERS THEN
                RETURN;
        END;
    END LOOP;
END $$;

CREATE PROCEDURE lapwing.commit_many_durably(
    p_ledger_id text, p_epoch text, p_nonces text[], p_charge_ids bigint[], p_digests text[], p_losses numeric[], p_deltas numeric[],
    p_pures numeric[], p_payloads bytea[], OUT outcomes text[], OUT o_state text[]
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true),
        pg_catalog.set_config('lapwing.flush_follows', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    SELECT r.* INTO outcomes, o_state
        FROM lapwing.commit_many(p_ledger_id, p_epoch, p_nonces, p_charge_ids, p_digests, p_losses, p_deltas, p_pures, p_payloads) AS r;
    COMMIT;  -- both settings end here
    CALL lapwing.wait_for_disk();
END $$;

CREATE PROCEDURE lapwing.commit_across_durably(
    p_ledger_ids text[], p_epochs text[], p_anchor_entries bigint[], p_anchor_heads text[], p_nonces text[], p_charge_ids bigint[],
    p_digests text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[], p_payloads bytea[], OUT o_done boolean[], OUT o_states text[]
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true),
        pg_catalog.set_config('lapwing.flush_follows', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    SELECT r.* INTO o_done, o_states
        FROM lapwing.commit_across(p_ledger_ids, p_epochs, p_anchor_entries, p_anchor_heads, p_nonces, p_charge_ids, p_digests, p_losses,
            p_deltas, p_pures, p_payloads) AS r;
    COMMIT;  -- both settings end here
    CALL lapwing.wait_for_disk();
END $$;
