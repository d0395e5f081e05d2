-- The owner's acts. Each locks the row of its data set, changes it and writes an entry, in one statement.

CREATE FUNCTION lapwing.budgets_evidence(p_budget text, p_ceiling text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT lapwing.digest(p_budget, p_ceiling)
$$;

-- Evidence of a policy: what it is about, then a digest of all of it that is in force from this entry on.
CREATE FUNCTION lapwing.limits_evidence(ds lapwing.data_set) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'limits ' || lapwing.digest(VARIADIC lapwing.with_later(ARRAY[ds.statement_loss_max::text, ds.day_loss_max::text,
        ds.answers_shared::text, ds.lost_workers_max::text, ds.lost_workers_seconds::text], ds.statement_pure_max::text, ds.day_pure_max::text))
$$;

CREATE FUNCTION lapwing.analyst_evidence(a lapwing.analyst) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'analyst ' || a.analyst || ' ' || lapwing.digest(VARIADIC lapwing.with_later(ARRAY[a.group_name, a.suspended::text,
        a.loss_total::text, a.delta_total::text, a.day_loss_max::text], a.pure_total::text, a.day_pure_max::text))
$$;

-- The names of the anchors: every worker writes to each of them, and none is omitted or removed without an entry.
CREATE FUNCTION lapwing.set_anchors(ds lapwing.data_set, p_anchors text[], p_detail text) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
BEGIN
    ds.anchors := p_anchors;
    RETURN lapwing.append(ds, 'policy', '', NULL, 0, 0, p_detail, 'anchors ' || lapwing.digest(ds.anchors::text));
END $$;

CREATE FUNCTION lapwing.group_evidence(g lapwing.analyst_group) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'group ' || g.group_name || ' ' || lapwing.digest(VARIADIC lapwing.with_later(ARRAY[g.loss_total::text, g.delta_total::text],
        g.pure_total::text))
$$;

CREATE FUNCTION lapwing.create_data_set(p_ledger_id text, p_source_id text, p_fingerprint text, p_budget text, p_ceiling text,
    p_by text, p_override text, p_anchors text[], OUT outcome text, OUT known text[], OUT state lapwing.data_set) LANGUAGE plpgsql AS $$
DECLARE ds lapwing.data_set;
BEGIN
    PERFORM lapwing.require_durable();
    -- Of two concurrent registrations of one source, the second waits here, then sees the first.
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
    INSERT INTO lapwing.data_set (ledger_id, source_id, budget, ceiling, loss_total, delta_total, pure_total, loss_ceiling, delta_ceiling,
            pure_ceiling, head)
        VALUES (p_ledger_id, p_source_id, p_budget, p_ceiling,
            (p_budget::jsonb ->> 'loss_total')::numeric, (p_budget::jsonb ->> 'delta_total')::numeric, (p_budget::jsonb ->> 'pure_total')::numeric,
            (p_ceiling::jsonb ->> 'loss_total')::numeric, (p_ceiling::jsonb ->> 'delta_total')::numeric,
            (p_ceiling::jsonb ->> 'pure_total')::numeric,
            lapwing.digest('lapwing ledger', p_ledger_id, p_source_id))
        RETURNING * INTO ds;
    INSERT INTO lapwing.fingerprint VALUES (p_fingerprint, p_source_id) ON CONFLICT DO NOTHING;
    ds := lapwing.append(ds, 'register', '', NULL, 0, 0, 'registered ' || p_source_id || ' by ' || p_by,
        lapwing.budgets_evidence(p_budget, p_ceiling));
    ds := lapwing.append(ds, 'policy', '', NULL, 0, 0, 'limits', lapwing.limits_evidence(ds));
    ds := lapwing.set_anchors(ds, p_anchors, 'anchors ' || array_to_string(p_anchors, ', '));
    IF known IS NOT NULL THEN
        ds := lapwing.append(ds, 'override', '', NULL, 0, 0, 'source-registered: ' || p_override, '');
    END IF;
    outcome := 'done'; state := ds;
END $$;

CREATE FUNCTION lapwing.set_closed(p_ledger_id text, p_closed boolean, p_detail text) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    ds.closed := p_closed;
    RETURN lapwing.append(ds, CASE WHEN p_closed THEN 'close' ELSE 'reopen' END, '', NULL, 0, 0, p_detail, '');
END $$;

CREATE FUNCTION lapwing.record(p_ledger_id text, p_kind text, p_detail text) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    IF p_kind NOT IN ('override', 'version', 'retire') THEN
        RAISE EXCEPTION 'entries of this kind are written by the ledger itself' USING ERRCODE = 'LW009';
    END IF;
    RETURN lapwing.append(ds, p_kind, '', NULL, 0, 0, p_detail, '');
END $$;

-- The outcome that refuses a budget, or 'done'.
CREATE FUNCTION lapwing.budget_outcome(ds lapwing.data_set, p_budget text, p_second boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    to_loss numeric := (p_budget::jsonb ->> 'loss_total')::numeric;
    to_delta numeric := (p_budget::jsonb ->> 'delta_total')::numeric;
    to_pure numeric := (p_budget::jsonb ->> 'pure_total')::numeric;
BEGIN
    IF to_loss > ds.loss_ceiling OR to_delta > ds.delta_ceiling OR to_pure > ds.pure_ceiling THEN
        RETURN 'above-ceiling';
    ELSIF lapwing.exceeds(ds.loss_spent, ds.pure_spent, to_loss, to_pure) OR to_delta < ds.delta_spent THEN
        RETURN 'below-spent';
    ELSIF ds.blocks_every IS NOT NULL AND lapwing.tree_exceeds(ds.ledger_id, 1, -65536, 65535, 0, 0, 0, to_loss, to_delta, to_pure) THEN
        RETURN 'below-spent';
    ELSIF (to_loss > ds.loss_total OR to_delta > ds.delta_total OR to_pure > ds.pure_total) AND NOT p_second THEN
        RETURN 'second-person';
    END IF;
    RETURN 'done';
END $$;

CREATE FUNCTION lapwing.apply_budget(ds lapwing.data_set, p_budget text, p_detail text) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
BEGIN
    ds.budget := p_budget;
    ds.loss_total := (p_budget::jsonb ->> 'loss_total')::numeric;
    ds.delta_total := (p_budget::jsonb ->> 'delta_total')::numeric;
    ds.pure_total := (p_budget::jsonb ->> 'pure_total')::numeric;
    PERFORM lapwing.set_tree_totals(ds);
    RETURN lapwing.append(ds, 'budget', '', NULL, 0, 0, p_detail, lapwing.budgets_evidence(ds.budget, ds.ceiling));
END $$;

-- p_seen is the ceiling with which the caller compared the budget; if it changed meanwhile, the caller must compare again.
CREATE FUNCTION lapwing.set_budget(p_ledger_id text, p_seen text, p_budget text, p_detail text,
    OUT outcome text, OUT state lapwing.data_set) LANGUAGE plpgsql AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    outcome := CASE WHEN ds.ceiling <> p_seen THEN 'changed' ELSE lapwing.budget_outcome(ds, p_budget, false) END;
    state := CASE WHEN outcome = 'done' THEN lapwing.apply_budget(ds, p_budget, p_detail) ELSE ds END;
END $$;

CREATE FUNCTION lapwing.set_limits(p_ledger_id text, p_statement_loss_max numeric, p_day_loss_max numeric, p_answers_shared boolean,
    p_lost_workers_max integer, p_lost_workers_seconds integer, p_detail text, p_statement_pure_max numeric DEFAULT NULL,
    p_day_pure_max numeric DEFAULT NULL) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    ds.statement_loss_max := p_statement_loss_max; ds.day_loss_max := p_day_loss_max; ds.answers_shared := p_answers_shared;
    ds.statement_pure_max := p_statement_pure_max; ds.day_pure_max := p_day_pure_max;
    ds.lost_workers_max := p_lost_workers_max; ds.lost_workers_seconds := p_lost_workers_seconds;
    RETURN lapwing.append(ds, 'policy', '', NULL, 0, 0, p_detail, lapwing.limits_evidence(ds));
END $$;

CREATE FUNCTION lapwing.set_group(p_ledger_id text, p_group text, p_loss_total numeric, p_delta_total numeric, p_detail text,
    p_pure_total numeric DEFAULT NULL, OUT outcome text, OUT state lapwing.data_set) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    g lapwing.analyst_group;
BEGIN
    state := ds;
    SELECT * INTO g FROM lapwing.analyst_group WHERE ledger_id = p_ledger_id AND group_name = p_group;
    IF lapwing.exceeds(g.loss_spent, g.pure_spent, p_loss_total, p_pure_total) OR p_delta_total < g.delta_spent THEN
        outcome := 'below-spent'; RETURN;
    END IF;
    INSERT INTO lapwing.analyst_group (ledger_id, group_name, loss_total, delta_total, pure_total)
        VALUES (p_ledger_id, p_group, p_loss_total, p_delta_total, p_pure_total)
        ON CONFLICT (ledger_id, group_name) DO UPDATE SET loss_total = excluded.loss_total, delta_total = excluded.delta_total,
            pure_total = excluded.pure_total
        RETURNING * INTO g;
    state := lapwing.append(ds, 'policy', '', NULL, 0, 0, p_detail, lapwing.group_evidence(g));
    outcome := 'done';
END $$;

CREATE FUNCTION lapwing.set_analyst(p_ledger_id text, p_analyst text, p_group text, p_suspended boolean, p_loss_total numeric,
    p_delta_total numeric, p_day_loss_max numeric, p_detail text, p_pure_total numeric DEFAULT NULL, p_day_pure_max numeric DEFAULT NULL,
    OUT outcome text, OUT state lapwing.data_set) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    a lapwing.analyst;
BEGIN
    state := ds;
    SELECT * INTO a FROM lapwing.analyst WHERE ledger_id = p_ledger_id AND analyst = p_analyst;
    IF lapwing.exceeds(a.loss_spent, a.pure_spent, p_loss_total, p_pure_total) OR p_delta_total < a.delta_spent THEN
        outcome := 'below-spent'; RETURN;
    END IF;
    IF p_group IS NOT NULL AND NOT EXISTS (SELECT FROM lapwing.analyst_group WHERE ledger_id = p_ledger_id AND group_name = p_group) THEN
        outcome := 'group-unknown'; RETURN;
    END IF;
    INSERT INTO lapwing.analyst (ledger_id, analyst, group_name, suspended, loss_total, delta_total, day_loss_max, pure_total, day_pure_max)
        VALUES (p_ledger_id, p_analyst, p_group, p_suspended, p_loss_total, p_delta_total, p_day_loss_max, p_pure_total, p_day_pure_max)
        ON CONFLICT (ledger_id, analyst) DO UPDATE SET group_name = excluded.group_name, suspended = excluded.suspended,
            loss_total = excluded.loss_total, delta_total = excluded.delta_total, day_loss_max = excluded.day_loss_max,
            pure_total = excluded.pure_total, day_pure_max = excluded.day_pure_max
        RETURNING * INTO a;
    state := lapwing.append(ds, 'policy', p_analyst, NULL, 0, 0, p_detail, lapwing.analyst_evidence(a));
    outcome := 'done';
END $$;

-- Proposals: by an owner for the budget, the ceiling, the cap of a person or a lost anchor, by an analyst for a larger sub-budget. Another person must decide, by the
-- given name; and a proposal of an owner must be decided in a session of another database role, whatever the given name.
CREATE FUNCTION lapwing.propose(p_ledger_id text, p_kind text, p_target text, p_by text, p_budget text, p_loss_total numeric,
    p_delta_total numeric, p_reason text, p_pure_total numeric DEFAULT NULL, OUT outcome text, OUT o_proposal_id bigint, OUT state lapwing.data_set) LANGUAGE plpgsql AS $$
DECLARE ds lapwing.data_set := lapwing.locked(p_ledger_id);
BEGIN
    state := ds;
    IF p_kind = 'analyst' AND NOT EXISTS (SELECT FROM lapwing.analyst WHERE ledger_id = p_ledger_id AND analyst = p_target AND NOT suspended)
    THEN
        outcome := 'analyst-unknown'; RETURN;
    ELSIF p_kind = 'anchor' AND p_target <> ALL (ds.anchors) THEN
        outcome := 'anchor-unknown'; RETURN;
    ELSIF p_kind = 'cap' AND ds.blocks_every IS NULL THEN
        outcome := 'blocks-undeclared'; RETURN;
    END IF;
    outcome := 'done';
    SELECT coalesce(max(proposal_id), 0) + 1 INTO o_proposal_id FROM lapwing.proposal WHERE ledger_id = p_ledger_id;
    INSERT INTO lapwing.proposal (ledger_id, proposal_id, kind, target, proposed_by, proposed_role, budget, loss_total, delta_total, pure_total,
            reason)
        VALUES (p_ledger_id, o_proposal_id, p_kind, p_target, p_by, session_user, p_budget, p_loss_total, p_delta_total, p_pure_total, p_reason);
    state := lapwing.append(ds, 'propose', p_target, NULL, 0, 0, 'proposal ' || o_proposal_id || ' by ' || p_by || ': ' || p_reason,
        lapwing.digest(VARIADIC lapwing.with_later(ARRAY[o_proposal_id::text, p_kind, p_target, p_by, p_budget, p_loss_total::text,
            p_delta_total::text, session_user::text], p_pure_total::text)));
END $$;

-- The only proposal that does not come from an owner.
CREATE FUNCTION lapwing.request_share(p_ledger_id text, p_analyst text, p_loss_total numeric, p_delta_total numeric, p_reason text,
    p_pure_total numeric DEFAULT NULL, OUT outcome text, OUT o_proposal_id bigint, OUT state lapwing.data_set) LANGUAGE plpgsql AS $$
DECLARE proposed record;
BEGIN
    SELECT r.* INTO proposed FROM lapwing.propose(p_ledger_id, 'analyst', p_analyst, p_analyst, '', p_loss_total, p_delta_total, p_reason,
        p_pure_total) AS r;
    outcome := proposed.outcome; o_proposal_id := proposed.o_proposal_id; state := proposed.state;
END $$;

CREATE FUNCTION lapwing.decide(p_ledger_id text, p_proposal_id bigint, p_by text, p_approve boolean, p_seen text, p_reason text,
    OUT outcome text, OUT state lapwing.data_set) LANGUAGE plpgsql AS $$
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
    ELSIF p.proposed_by = p_by OR (p_approve AND p.kind <> 'analyst' AND p.proposed_role IN ('', session_user)) THEN
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
        IF p.loss_total < ds.loss_ceiling OR p.delta_total < ds.delta_ceiling OR p.pure_total < ds.pure_ceiling THEN
            outcome := 'ceiling-lowered';
        ELSE
            ds.ceiling := p.budget; ds.loss_ceiling := p.loss_total; ds.delta_ceiling := p.delta_total;
            ds.pure_ceiling := p.pure_total;
            ds := lapwing.append(ds, 'ceiling', '', NULL, 0, 0, detail, lapwing.budgets_evidence(ds.budget, ds.ceiling));
        END IF;
    ELSIF p_approve AND p.kind = 'cap' THEN
        outcome := lapwing.cap_outcome(ds, nullif(p.budget, ''), true);
        IF outcome = 'done' THEN
            ds := lapwing.apply_cap(ds, nullif(p.budget, ''), detail);
        END IF;
    ELSIF p_approve AND p.kind = 'anchor' THEN
        ds := lapwing.set_anchors(ds, array_remove(ds.anchors, p.target), detail);
    ELSIF p_approve THEN
        SELECT * INTO a FROM lapwing.analyst WHERE ledger_id = p_ledger_id AND analyst = p.target;
        IF NOT FOUND THEN
            outcome := 'analyst-unknown';
        ELSIF lapwing.exceeds(a.loss_spent, a.pure_spent, p.loss_total, p.pure_total) OR p.delta_total < a.delta_spent THEN
            outcome := 'below-spent';
        ELSE
            UPDATE lapwing.analyst SET loss_total = p.loss_total, delta_total = p.delta_total, pure_total = p.pure_total
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

-- After a restore of an older state: the charges made after the newest state that is certainly common are charged again as one amount, under
-- the budget in the anchor. If they do not fit, more was spent than was promised: nothing is left, and the data set closes. Of two sums, the one
-- that was within its total is filled, and the other gets everything that was lost.
CREATE FUNCTION lapwing.accept_override(p_ledger_id text, p_detail text, p_fingerprint text, p_behind boolean, p_loss_lost numeric,
    p_delta_lost numeric, p_pure_lost numeric, p_budget text, p_ceiling text, p_closed boolean, p_anchors text[], p_every text DEFAULT NULL,
    p_person_budget text DEFAULT NULL, p_blocks text DEFAULT NULL) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    loss_ceiling numeric := (p_ceiling::jsonb ->> 'loss_total')::numeric;
    loss_total numeric := (p_budget::jsonb ->> 'loss_total')::numeric;
    pure_total numeric := (p_budget::jsonb ->> 'pure_total')::numeric;
    lost record;
    of_blocks record;
BEGIN
    -- One person may add anchors; the removal of an anchor that cannot be compared takes two, and happens elsewhere.
    IF NOT ds.anchors <@ p_anchors THEN
        RAISE EXCEPTION 'the anchors are not those of the ledger' USING ERRCODE = 'LW003';
    END IF;
    ds := lapwing.append(ds, 'override', '', NULL, 0, 0, p_detail, '');
    IF ds.anchors <> p_anchors THEN
        ds := lapwing.set_anchors(ds, p_anchors, 'anchors ' || array_to_string(p_anchors, ', '));
    END IF;
    IF p_fingerprint IS NOT NULL THEN
        INSERT INTO lapwing.fingerprint VALUES (p_fingerprint, ds.source_id) ON CONFLICT DO NOTHING;
    END IF;
    IF p_behind THEN
        IF loss_ceiling >= ds.loss_ceiling AND lapwing.budget_outcome(ds, p_budget, true) <> 'below-spent' THEN
            ds.budget := p_budget; ds.loss_total := loss_total; ds.delta_total := (p_budget::jsonb ->> 'delta_total')::numeric;
            ds.pure_total := pure_total;
            ds.ceiling := p_ceiling; ds.loss_ceiling := loss_ceiling; ds.delta_ceiling := (p_ceiling::jsonb ->> 'delta_total')::numeric;
            ds.pure_ceiling := (p_ceiling::jsonb ->> 'pure_total')::numeric;
            PERFORM lapwing.set_tree_totals(ds);
        END IF;
        SELECT f.* INTO lost FROM lapwing.filled(ds.loss_spent, ds.delta_spent, ds.pure_spent, ds.loss_total, ds.delta_total, ds.pure_total,
            p_loss_lost, p_delta_lost, p_pure_lost) AS f;
        IF p_every IS NOT NULL THEN
            SELECT r.* INTO of_blocks FROM lapwing.restore_blocks(ds, p_blocks, p_every, p_person_budget, p_detail) AS r;
            ds := of_blocks.o_state;
        ELSE
            SELECT NULL AS o_charged INTO of_blocks;
        END IF;
        ds := lapwing.append(ds, 'restore', '', NULL, lost.loss, lost.delta,
            'charges made after the restored state' || CASE WHEN lost.too_much THEN ': more than the budget has left' ELSE '' END,
            lapwing.budgets_evidence(ds.budget, ds.ceiling), CASE WHEN lost.loss > 0 OR p_delta_lost > 0 OR lost.pure > 0 THEN lost.pure END,
            of_blocks.o_charged);
        IF (p_closed OR lost.too_much) AND NOT ds.closed THEN
            ds.closed := true;
            ds := lapwing.append(ds, 'close', '', NULL, 0, 0,
                CASE WHEN lost.too_much THEN 'more was spent than the budget has' ELSE 'closed before the ledger was restored' END, '');
        END IF;
    END IF;
    RETURN ds;
END $$;
