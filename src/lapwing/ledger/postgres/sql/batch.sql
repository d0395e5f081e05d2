-- Many reservations, and many answers, of one worker for one data set, in one statement: one lock and one wait for the disk for all of them.
--
-- If they all fit together, they are all charged, each table being written once. Costs are not negative, so each of them would have been
-- charged by lapwing.reserve too, in any order. If it is not certain that they all fit, lapwing.reserve decides on each in turn. Either way the
-- outcomes are those of single reservations.

-- Whether lapwing.reserve would charge each of these, in any order. The caller holds the lock.
CREATE FUNCTION lapwing.all_fit(ds lapwing.data_set, p_epoch text, p_analysts text[], p_request_ids text[], p_losses numeric[],
    p_deltas numeric[], p_pures numeric[], p_today date) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE fits boolean;
BEGIN
    -- A comparison with a limit that is NULL is not false: no limit.
    WITH asked AS (
        SELECT * FROM unnest(p_analysts, p_request_ids, p_losses, p_deltas, p_pures) AS r (analyst, request_id, loss, delta, pure)
    ), of_all AS (
        SELECT count(DISTINCT (analyst, request_id)) AS keys, min(loss) AS loss_min, min(delta) AS delta_min, min(pure) AS pure_min,
            bool_or(lapwing.exceeds(loss, pure, ds.statement_loss_max, ds.statement_pure_max)) AS one_exceeds,
            sum(loss) AS loss, sum(delta) AS delta, CASE WHEN count(pure) = count(*) THEN sum(pure) END AS pure
        FROM asked
    ), of_analyst AS (
        SELECT a.group_name, s.requests, s.loss, s.delta, s.pure,
            NOT lapwing.exceeds(a.loss_spent + s.loss, a.pure_spent + s.pure, a.loss_total, a.pure_total)
                AND (a.delta_spent + s.delta <= a.delta_total) IS NOT FALSE
                AND NOT lapwing.exceeds(CASE WHEN a.day >= p_today THEN a.day_loss ELSE 0 END + s.loss,
                    CASE WHEN a.day >= p_today THEN a.day_pure ELSE 0 END + s.pure, a.day_loss_max, a.day_pure_max) AS fits
        FROM (SELECT analyst AS who, count(*) AS requests, sum(loss) AS loss, sum(delta) AS delta,
            CASE WHEN count(pure) = count(*) THEN sum(pure) END AS pure FROM asked GROUP BY analyst) AS s
        JOIN lapwing.analyst a ON a.ledger_id = ds.ledger_id AND a.analyst = s.who AND NOT a.suspended
    ), of_group AS (
        SELECT NOT lapwing.exceeds(g.loss_spent + sum(of_analyst.loss),
                    g.pure_spent + CASE WHEN count(of_analyst.pure) = count(*) THEN sum(of_analyst.pure) END, g.loss_total, g.pure_total)
                AND (g.delta_spent + sum(of_analyst.delta) <= g.delta_total) IS NOT FALSE AS fits
        FROM of_analyst JOIN lapwing.analyst_group g ON g.ledger_id = ds.ledger_id AND g.group_name = of_analyst.group_name
        GROUP BY g.ledger_id, g.group_name
    )
    SELECT NOT ds.superseded AND NOT ds.closed
            AND EXISTS (SELECT FROM lapwing.worker WHERE epoch = p_epoch AND ledger_id = ds.ledger_id AND ended_at IS NULL
                AND anchors = ds.anchors)
            AND keys = cardinality(p_analysts) AND loss_min > 0 AND delta_min >= 0 AND (pure_min >= 0) IS NOT FALSE
            -- LATERAL with a LIMIT: one look into the index for each key. As a plain join it may be planned as one pass over all past charges.
            AND NOT EXISTS (SELECT FROM asked, LATERAL (SELECT FROM lapwing.charge c
                WHERE c.ledger_id = ds.ledger_id AND c.analyst = asked.analyst AND c.request_id = asked.request_id LIMIT 1) AS used)
            AND NOT one_exceeds
            AND NOT lapwing.exceeds(CASE WHEN ds.day >= p_today THEN ds.day_loss ELSE 0 END + loss,
                CASE WHEN ds.day >= p_today THEN ds.day_pure ELSE 0 END + pure, ds.day_loss_max, ds.day_pure_max)
            AND (SELECT sum(requests) = cardinality(p_analysts) AND bool_and(of_analyst.fits) FROM of_analyst)
            AND (SELECT bool_and(of_group.fits) FROM of_group) IS NOT FALSE
            AND NOT lapwing.exceeds(ds.loss_spent + loss, ds.pure_spent + pure, ds.loss_total, ds.pure_total)
            AND ds.delta_spent + delta <= ds.delta_total
        INTO fits
        FROM of_all;
    RETURN fits IS TRUE;
END $$;

CREATE FUNCTION lapwing.reserve_many(
    p_ledger_id text, p_epoch text, p_nonces text[], p_analysts text[], p_request_ids text[], p_digests text[], p_versions bigint[],
    p_summaries text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[], p_anchor_entries bigint, p_anchor_head text,
    OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[]
) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    moment timestamptz := clock_timestamp();
    today date := (moment AT TIME ZONE 'UTC')::date;
    stamp text := lapwing.stamp(moment);
    n integer := cardinality(p_nonces);
    nonces text[];
    one record;
    groups text[];
    evidence text[];
    heads text[];
BEGIN
    IF NOT (p_anchor_entries = 0 OR p_anchor_head = ds.head
            OR EXISTS (SELECT FROM lapwing.entry WHERE ledger_id = p_ledger_id AND entry_id = p_anchor_entries AND chained = p_anchor_head))
        OR NOT lapwing.all_fit(ds, p_epoch, p_analysts, p_request_ids, p_losses, p_deltas, p_pures, today) THEN
        FOR i IN 1..n LOOP
            SELECT r.* INTO one FROM lapwing.reserve(p_ledger_id, p_epoch, p_nonces[i], p_analysts[i], p_request_ids[i], p_digests[i],
                p_versions[i], p_summaries[i], p_losses[i], p_deltas[i], p_pures[i], p_anchor_entries, p_anchor_head) AS r;
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
        nonces[i] := lapwing.digest(p_nonces[i]);
        evidence[i] := lapwing.digest(VARIADIC lapwing.with_later(ARRAY[(ds.charges + i)::text, p_analysts[i], groups[i], p_request_ids[i],
            p_digests[i], p_versions[i]::text, '', p_summaries[i], p_losses[i]::text, p_deltas[i]::text, p_epoch, nonces[i]], p_pures[i]::text));
        ds.head := lapwing.digest(VARIADIC lapwing.with_later(ARRAY[ds.head, (ds.entries + i)::text, stamp, 'reserve', p_analysts[i],
            (ds.charges + i)::text, p_losses[i]::text, p_deltas[i]::text, p_summaries[i], evidence[i]], p_pures[i]::text));
        heads[i] := ds.head;
    END LOOP;
    INSERT INTO lapwing.charge (ledger_id, charge_id, analyst, group_name, request_id, digest, version, summary, loss, delta, pure, epoch, nonce)
        SELECT p_ledger_id, r.charge_id, r.analyst, r.group_name, r.request_id, r.digest, r.version, r.summary, r.loss, r.delta, r.pure, p_epoch,
            r.nonce
        FROM unnest(o_charge_ids, p_analysts, groups, p_request_ids, p_digests, p_versions, p_summaries, p_losses, p_deltas, p_pures, nonces)
            AS r (charge_id, analyst, group_name, request_id, digest, version, summary, loss, delta, pure, nonce);
    INSERT INTO lapwing.entry (ledger_id, entry_id, at, kind, analyst, charge_id, loss, delta, pure, detail, evidence, chained)
        SELECT p_ledger_id, ds.entries + r.i, stamp, 'reserve', r.analyst, r.charge_id, r.loss, r.delta, r.pure, r.summary, r.evidence, r.head
        FROM unnest(o_charge_ids, p_analysts, p_losses, p_deltas, p_pures, p_summaries, evidence, heads) WITH ORDINALITY
            AS r (charge_id, analyst, loss, delta, pure, summary, evidence, head, i);
    -- A sum of pure amounts of which one is NULL is NULL: sum() alone would leave it out.
    UPDATE lapwing.analyst AS a SET loss_spent = a.loss_spent + s.loss, delta_spent = a.delta_spent + s.delta,
            pure_spent = a.pure_spent + s.pure, day = greatest(a.day, today),
            day_loss = s.loss + CASE WHEN a.day >= today THEN a.day_loss ELSE 0 END,
            day_pure = s.pure + CASE WHEN a.day >= today THEN a.day_pure ELSE 0 END
        FROM (SELECT r.analyst, sum(r.loss) AS loss, sum(r.delta) AS delta, CASE WHEN count(r.pure) = count(*) THEN sum(r.pure) END AS pure
            FROM unnest(p_analysts, p_losses, p_deltas, p_pures) AS r (analyst, loss, delta, pure) GROUP BY r.analyst) AS s
        WHERE a.ledger_id = p_ledger_id AND a.analyst = s.analyst;
    UPDATE lapwing.analyst_group AS g SET loss_spent = g.loss_spent + s.loss, delta_spent = g.delta_spent + s.delta,
            pure_spent = g.pure_spent + s.pure
        FROM (SELECT r.group_name, sum(r.loss) AS loss, sum(r.delta) AS delta, CASE WHEN count(r.pure) = count(*) THEN sum(r.pure) END AS pure
            FROM unnest(groups, p_losses, p_deltas, p_pures) AS r (group_name, loss, delta, pure) GROUP BY r.group_name) AS s
        WHERE g.ledger_id = p_ledger_id AND g.group_name = s.group_name;
    UPDATE lapwing.data_set AS d SET loss_spent = d.loss_spent + s.loss, delta_spent = d.delta_spent + s.delta,
            pure_spent = d.pure_spent + s.pure, entries = d.entries + n,
            charges = d.charges + n, head = ds.head, day = greatest(d.day, today), anchored = greatest(d.anchored, p_anchor_entries),
            day_loss = s.loss + CASE WHEN d.day >= today THEN d.day_loss ELSE 0 END,
            day_pure = s.pure + CASE WHEN d.day >= today THEN d.day_pure ELSE 0 END
        FROM (SELECT sum(r.loss) AS loss, sum(r.delta) AS delta, CASE WHEN count(r.pure) = count(*) THEN sum(r.pure) END AS pure
            FROM unnest(p_losses, p_deltas, p_pures) AS r (loss, delta, pure)) AS s
        WHERE d.ledger_id = p_ledger_id
        RETURNING d.* INTO ds;
    o_state := lapwing.state_texts(ds);
END $$;

CREATE PROCEDURE lapwing.reserve_many_durably(
    p_ledger_id text, p_epoch text, p_nonces text[], p_analysts text[], p_request_ids text[], p_digests text[], p_versions bigint[],
    p_summaries text[], p_losses numeric[], p_deltas numeric[], p_pures numeric[], p_anchor_entries bigint, p_anchor_head text,
    OUT outcomes text[], OUT o_charge_ids bigint[], OUT o_payloads bytea[], OUT o_payload_digests text[], OUT o_state text[]
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lapwing.require_durable();
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true),
        pg_catalog.set_config('lapwing.flush_follows', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    SELECT r.* INTO outcomes, o_charge_ids, o_payloads, o_payload_digests, o_state
        FROM lapwing.reserve_many(p_ledger_id, p_epoch, p_nonces, p_analysts, p_request_ids, p_digests, p_versions, p_summaries, p_losses,
            p_deltas, p_pures, p_anchor_entries, p_anchor_head) AS r;
    COMMIT;  -- both settings end here
    CALL lapwing.wait_for_disk();
END $$;

-- Many answers of one worker for one data set. If every charge is open to this worker and none is named twice, they are all settled, each table
-- being written once; else lapwing.commit decides on each in turn. Either way the outcomes are those of single calls, in this order.
CREATE FUNCTION lapwing.commit_many(
    p_ledger_id text, p_epoch text, p_nonces text[], p_charge_ids bigint[], p_digests text[], p_losses numeric[], p_deltas numeric[],
    p_pures numeric[], p_payloads bytea[], OUT outcomes text[], OUT o_state text[]
) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    stamp text := lapwing.stamp(clock_timestamp());
    n integer := cardinality(p_nonces);
    analysts text[];
    hashes text[];
    heads text[];
    one record;
BEGIN
    SELECT array_agg(c.analyst ORDER BY r.i), array_agg(encode(sha256(r.payload), 'hex') ORDER BY r.i) INTO analysts, hashes
        FROM unnest(p_nonces, p_charge_ids, p_digests, p_losses, p_deltas, p_pures, p_payloads) WITH ORDINALITY
            AS r (nonce, charge_id, digest, loss, delta, pure, payload, i)
        -- LATERAL with a LIMIT: one look into the index for each, as in lapwing.all_fit.
        CROSS JOIN LATERAL (SELECT o.analyst FROM lapwing.charge o
            WHERE o.ledger_id = p_ledger_id AND o.charge_id = r.charge_id AND o.epoch = p_epoch AND o.nonce = lapwing.digest(r.nonce)
                AND o.digest = r.digest AND o.loss = r.loss AND o.delta = r.delta AND o.pure IS NOT DISTINCT FROM r.pure
                AND o.state = 'reserved' LIMIT 1) AS c
        WHERE NOT ds.superseded AND EXISTS (SELECT FROM lapwing.worker WHERE epoch = p_epoch AND ended_at IS NULL);
    IF cardinality(analysts) IS DISTINCT FROM n OR (SELECT count(DISTINCT id) FROM unnest(p_charge_ids) AS id) <> n THEN
        FOR i IN 1..n LOOP
            SELECT r.* INTO one FROM lapwing.commit(p_ledger_id, p_epoch, p_nonces[i], p_charge_ids[i], p_digests[i], p_losses[i], p_deltas[i],
                p_pures[i], p_payloads[i]) AS r;
            outcomes[i] := one.outcome;
            o_state := coalesce(one.o_state, o_state);
        END LOOP;
        RETURN;
    END IF;
    FOR i IN 1..n LOOP
        outcomes[i] := 'done';
        ds.head := lapwing.digest(ds.head, (ds.entries + i)::text, stamp, 'commit', analysts[i], p_charge_ids[i]::text, '0', '0', '', hashes[i]);
        heads[i] := ds.head;
    END LOOP;
    UPDATE lapwing.charge AS c SET state = 'committed', payload = r.payload, payload_digest = r.hashed
        FROM unnest(p_charge_ids, p_payloads, hashes) AS r (charge_id, payload, hashed)
        WHERE c.ledger_id = p_ledger_id AND c.charge_id = r.charge_id;
    INSERT INTO lapwing.entry (ledger_id, entry_id, at, kind, analyst, charge_id, loss, delta, pure, detail, evidence, chained)
        SELECT p_ledger_id, ds.entries + r.i, stamp, 'commit', r.analyst, r.charge_id, 0, 0, NULL, '', r.hashed, r.head
        FROM unnest(p_charge_ids, analysts, hashes, heads) WITH ORDINALITY AS r (charge_id, analyst, hashed, head, i);
    UPDATE lapwing.data_set SET entries = entries + n, head = ds.head WHERE ledger_id = p_ledger_id RETURNING * INTO ds;
    o_state := lapwing.state_texts(ds);
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
