-- Balances of blocks of time: the trees of 0007_tables.sql. Every caller holds the lock of the data set.
--
-- Blocks have the numbers -65536 to 65535; counted from 0 they are 0 to 131071. The root is the node of level 6, half of which is not used. A
-- charge over a range is added to the parts that lie within it, of the nodes that lie partly within it: at most two nodes of each level. The
-- most of the parts above them are then computed again.

-- The parts of a charge, as JSON has them. A part without numbers is what the tables without time pay.
CREATE FUNCTION lapwing.block_parts(p_blocks text, OUT first_block integer, OUT last_block integer, OUT loss numeric, OUT delta numeric,
    OUT pure numeric) RETURNS SETOF record LANGUAGE sql IMMUTABLE AS $$
    SELECT (part ->> 0)::integer, (part ->> 1)::integer, (part ->> 2)::lapwing.amount, (part ->> 3)::lapwing.amount,
        (part ->> 4)::lapwing.amount
    FROM jsonb_array_elements(p_blocks::jsonb -> 'ranges') AS part
$$;

CREATE FUNCTION lapwing.most_of(p_amounts numeric[]) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN count(amount) = count(*) THEN max(amount) END FROM unnest(p_amounts) AS amount
$$;

CREATE FUNCTION lapwing.raise_tree(p_ledger_id text, p_tree integer, p_first integer, p_last integer, p_loss numeric, p_delta numeric,
    p_pure numeric) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    zeros CONSTANT numeric[] := '{0,0,0,0,0,0,0,0}';
    low CONSTANT integer := p_first + 65536;
    high CONSTANT integer := p_last + 65536;
    begins integer;  -- the first block of a node or of a part
    size integer;  -- of a part
    node lapwing.block_node;
    below lapwing.block_node[] := ARRAY[NULL, NULL]::lapwing.block_node[];  -- the nodes of the level below, on the left and on the right
    lower lapwing.block_node;
BEGIN
    IF (0 <= low AND low <= high AND high < 131072 AND p_loss >= 0 AND p_delta >= 0 AND (p_pure >= 0) IS NOT FALSE) IS NOT TRUE THEN
        RAISE EXCEPTION 'no such range or amounts' USING ERRCODE = 'LW009';
    END IF;
    FOR n IN 1..6 LOOP
        size := 8 ^ (n - 1);
        FOR side IN 1..CASE WHEN low >> 3 * n = high >> 3 * n THEN 1 ELSE 2 END LOOP
            begins := CASE side WHEN 1 THEN low ELSE high END >> 3 * n << 3 * n;
            CONTINUE WHEN n < 6 AND low <= begins AND begins + 8 * size - 1 <= high;  -- a part of the level above
            SELECT * INTO node FROM lapwing.block_node
                WHERE ledger_id = p_ledger_id AND tree = p_tree AND tree_level = n AND place = begins >> 3 * n;
            IF NOT FOUND THEN
                node := ROW(p_ledger_id, p_tree, n, begins >> 3 * n, zeros, zeros, zeros, zeros, zeros, zeros);
            END IF;
            FOR part IN greatest(1, 1 + (low - begins) / size)..least(8, 1 + (high - begins) / size) LOOP
                IF low <= begins + (part - 1) * size AND begins + part * size - 1 <= high THEN
                    node.loss_own[part] := node.loss_own[part] + p_loss;
                    node.delta_own[part] := node.delta_own[part] + p_delta;
                    node.pure_own[part] := node.pure_own[part] + p_pure;
                    node.loss_most[part] := node.loss_most[part] + p_loss;
                    node.delta_most[part] := node.delta_most[part] + p_delta;
                    node.pure_most[part] := node.pure_most[part] + p_pure;
                ELSE
                    lower := below[CASE WHEN below[1].tree_level = n - 1 AND below[1].place = (begins >> 3 * n - 3) + part - 1 THEN 1 ELSE 2 END];
                    node.loss_most[part] := node.loss_own[part] + lapwing.most_of(lower.loss_most);
                    node.delta_most[part] := node.delta_own[part] + lapwing.most_of(lower.delta_most);
                    node.pure_most[part] := node.pure_own[part] + lapwing.most_of(lower.pure_most);
                END IF;
            END LOOP;
            INSERT INTO lapwing.block_node VALUES (node.*)
                ON CONFLICT (ledger_id, tree, tree_level, place) DO UPDATE SET loss_own = excluded.loss_own, delta_own = excluded.delta_own,
                    pure_own = excluded.pure_own, loss_most = excluded.loss_most, delta_most = excluded.delta_most,
                    pure_most = excluded.pure_most;
            below[side] := node;
        END LOOP;
    END LOOP;
    UPDATE lapwing.block_tree SET loss_most = lapwing.most_of(node.loss_most), delta_most = lapwing.most_of(node.delta_most),
            pure_most = lapwing.most_of(node.pure_most)
        WHERE ledger_id = p_ledger_id AND tree = p_tree;
END $$;

-- Whether a block of the range would be above the totals of its tree with these amounts more.
CREATE FUNCTION lapwing.tree_exceeds(p_ledger_id text, p_tree integer, p_first integer, p_last integer, p_loss numeric, p_delta numeric,
    p_pure numeric, p_loss_total numeric, p_delta_total numeric, p_pure_total numeric) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE t lapwing.block_tree;
BEGIN
    SELECT * INTO STRICT t FROM lapwing.block_tree WHERE ledger_id = p_ledger_id AND tree = p_tree;
    IF NOT lapwing.exceeds(t.loss_most + p_loss, t.pure_most + p_pure, p_loss_total, p_pure_total)
        AND (t.delta_most + p_delta > p_delta_total) IS NOT TRUE THEN
        RETURN false;  -- all blocks together are within: the usual case
    END IF;
    RETURN lapwing.node_exceeds(p_ledger_id, p_tree, 6, 0, p_first + 65536, p_last + 65536, p_loss, p_delta, p_pure, p_loss_total,
        p_delta_total, p_pure_total);
END $$;

-- The same below one node, with what was charged above it added to the amounts. What a part owns is at least what any of its blocks has, and
-- its most is at least what any of them has more; where that does not decide, the node below does. Of two sums, each may have its most in
-- another block: then only a block can say.
CREATE FUNCTION lapwing.node_exceeds(p_ledger_id text, p_tree integer, p_level integer, p_place integer, p_low integer, p_high integer,
    p_loss numeric, p_delta numeric, p_pure numeric, p_loss_total numeric, p_delta_total numeric, p_pure_total numeric) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    size CONSTANT integer := 8 ^ (p_level - 1);
    begins CONSTANT integer := p_place << 3 * p_level;
    node lapwing.block_node;
BEGIN
    SELECT * INTO node FROM lapwing.block_node
        WHERE ledger_id = p_ledger_id AND tree = p_tree AND tree_level = p_level AND place = p_place;
    IF NOT FOUND THEN
        RETURN lapwing.exceeds(p_loss, p_pure, p_loss_total, p_pure_total) OR (p_delta > p_delta_total) IS TRUE;
    END IF;
    FOR part IN greatest(1, 1 + (p_low - begins) / size)..least(8, 1 + (p_high - begins) / size) LOOP
        CONTINUE WHEN NOT lapwing.exceeds(p_loss + node.loss_most[part], p_pure + node.pure_most[part], p_loss_total, p_pure_total)
            AND (p_delta + node.delta_most[part] > p_delta_total) IS NOT TRUE;
        IF lapwing.exceeds(p_loss + node.loss_own[part], p_pure + node.pure_own[part], p_loss_total, p_pure_total)
            OR (p_delta + node.delta_own[part] > p_delta_total) IS TRUE THEN
            RETURN true;
        ELSIF p_low <= begins + (part - 1) * size AND begins + part * size - 1 <= p_high
            AND (p_pure_total IS NULL OR (p_delta + node.delta_most[part] > p_delta_total) IS TRUE) THEN
            RETURN true;
        ELSIF p_level > 1 AND lapwing.node_exceeds(p_ledger_id, p_tree, p_level - 1, (p_place << 3) + part - 1, p_low, p_high,
                p_loss + node.loss_own[part], p_delta + node.delta_own[part], p_pure + node.pure_own[part], p_loss_total, p_delta_total,
                p_pure_total) THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;

-- The ranges of blocks that have the same balance as far as the nodes say, in order; all blocks are in one of them.
CREATE FUNCTION lapwing.tree_pieces(p_ledger_id text, p_tree integer, OUT first_block integer, OUT last_block integer, OUT loss numeric,
    OUT delta numeric, OUT pure numeric) RETURNS SETOF record LANGUAGE sql STABLE AS $$
    WITH RECURSIVE node AS MATERIALIZED (
        SELECT * FROM lapwing.block_node WHERE ledger_id = p_ledger_id AND tree = p_tree
    ), piece (piece_level, place, is_whole, loss, delta, pure) AS (
        SELECT 6, 0, NOT EXISTS (SELECT FROM node), 0::numeric, 0::numeric, 0::numeric
        UNION ALL
        SELECT above.piece_level - 1, 8 * above.place + part.number::integer - 1,
            NOT EXISTS (SELECT FROM node AS lower
                WHERE lower.tree_level = above.piece_level - 1 AND lower.place = 8 * above.place + part.number::integer - 1),
            above.loss + part.loss, above.delta + part.delta, above.pure + part.pure
        FROM piece AS above JOIN node ON node.tree_level = above.piece_level AND node.place = above.place
        CROSS JOIN LATERAL unnest(node.loss_own, node.delta_own, node.pure_own) WITH ORDINALITY AS part (loss, delta, pure, number)
    )
    SELECT (place << 3 * piece_level) - 65536, least((place + 1) << 3 * piece_level, 131072) - 65537, loss, delta, pure
    FROM piece WHERE is_whole AND place << 3 * piece_level < 131072 ORDER BY 1
$$;

-- Decide on a charge to a data set with blocks and, if nothing refuses it, charge blocks and years. Returns what refuses it, and the part of
-- the tables without time, which is the caller's to charge. A charge without parts is paid by those alone, and concerns a person in any year.
CREATE FUNCTION lapwing.charge_blocks(ds lapwing.data_set, p_blocks text, p_loss numeric, p_delta numeric, p_pure numeric,
    OUT outcome text, OUT loss numeric, OUT delta numeric, OUT pure numeric) LANGUAGE plpgsql AS $$
DECLARE
    longer integer := CASE ds.blocks_every WHEN 'day' THEN 365 WHEN 'week' THEN 52 ELSE 11 END;
    person_loss numeric := p_loss;
    person_delta numeric := p_delta;
    person_pure numeric := p_pure;
    parts record;
    years int4multirange;
    one record;
    t lapwing.block_tree;
BEGIN
    SELECT count(*) FILTER (WHERE r.first_block IS NULL) AS without_time, count(*) FILTER (WHERE r.first_block IS NOT NULL) AS of_time,
            min(r.first_block) AS first_block, max(r.last_block) AS last_block,
            coalesce(max(r.loss) FILTER (WHERE r.first_block IS NOT NULL), 0) AS loss,
            coalesce(max(r.delta) FILTER (WHERE r.first_block IS NOT NULL), 0) AS delta,
            CASE WHEN bool_and(r.pure IS NOT NULL) FILTER (WHERE r.first_block IS NOT NULL) IS NOT FALSE
                THEN coalesce(max(r.pure) FILTER (WHERE r.first_block IS NOT NULL), 0) END AS pure,
            coalesce(max(r.loss) FILTER (WHERE r.first_block IS NULL), 0) AS standing_loss,
            coalesce(max(r.delta) FILTER (WHERE r.first_block IS NULL), 0) AS standing_delta,
            CASE WHEN bool_and(r.pure IS NOT NULL) FILTER (WHERE r.first_block IS NULL) IS NOT FALSE
                THEN coalesce(max(r.pure) FILTER (WHERE r.first_block IS NULL), 0) END AS standing_pure,
            coalesce(sum(r.last_block - r.first_block + 1), 0) AS blocks,
            range_agg(int4range(r.first_block, r.last_block, '[]')) FILTER (WHERE r.first_block IS NOT NULL) AS ranges,
            range_agg(int4range(r.first_block, least(r.last_block + longer, 65535), '[]')) FILTER (WHERE r.first_block IS NOT NULL) AS years
        INTO parts FROM lapwing.block_parts(p_blocks) AS r;
    IF parts.without_time > 1 OR parts.blocks <> (SELECT coalesce(sum(upper(u) - lower(u)), 0) FROM unnest(parts.ranges) AS u) THEN
        RAISE EXCEPTION 'parts of a charge overlap' USING ERRCODE = 'LW009';
    END IF;
    years := CASE WHEN parts.without_time > 0 OR parts.of_time = 0 THEN int4multirange(int4range(-65536, 65536)) ELSE parts.years END;
    IF p_blocks IS NULL THEN
        loss := p_loss; delta := p_delta; pure := p_pure;
    ELSE
        loss := parts.standing_loss; delta := parts.standing_delta; pure := parts.standing_pure;
        person_loss := (p_blocks::jsonb #>> '{person,0}')::lapwing.amount;
        person_delta := (p_blocks::jsonb #>> '{person,1}')::lapwing.amount;
        person_pure := (p_blocks::jsonb #>> '{person,2}')::lapwing.amount;
    END IF;
    IF lapwing.exceeds(ds.loss_spent + loss, ds.pure_spent + pure, ds.loss_total, ds.pure_total) OR ds.delta_spent + delta > ds.delta_total THEN
        outcome := 'budget'; RETURN;
    END IF;
    SELECT * INTO STRICT t FROM lapwing.block_tree WHERE ledger_id = ds.ledger_id AND tree = 1;
    IF EXISTS (SELECT FROM lapwing.block_parts(p_blocks) AS r WHERE r.first_block IS NOT NULL AND lapwing.tree_exceeds(ds.ledger_id, 1,
            r.first_block, r.last_block, r.loss, r.delta, r.pure, t.loss_total, t.delta_total, t.pure_total)) THEN
        outcome := 'block-budget'; RETURN;
    END IF;
    SELECT * INTO STRICT t FROM lapwing.block_tree WHERE ledger_id = ds.ledger_id AND tree = 2;
    IF EXISTS (SELECT FROM unnest(years) AS y WHERE lapwing.tree_exceeds(ds.ledger_id, 2, lower(y), upper(y) - 1, person_loss, person_delta,
            person_pure, t.loss_total, t.delta_total, t.pure_total)) THEN
        outcome := 'person-cap'; RETURN;
    END IF;
    FOR one IN SELECT * FROM lapwing.block_parts(p_blocks) AS r WHERE r.first_block IS NOT NULL LOOP
        PERFORM lapwing.raise_tree(ds.ledger_id, 1, one.first_block, one.last_block, one.loss, one.delta, one.pure);
    END LOOP;
    FOR one IN SELECT lower(y) AS first_block, upper(y) - 1 AS last_block FROM unnest(years) AS y LOOP
        PERFORM lapwing.raise_tree(ds.ledger_id, 2, one.first_block, one.last_block, person_loss, person_delta, person_pure);
    END LOOP;
    PERFORM lapwing.count_blocks(ds.ledger_id, parts.first_block, parts.last_block, parts.loss, parts.delta, parts.pure, person_loss,
        person_delta, person_pure);
END $$;

-- What a restored database needs to know of a charge.
CREATE FUNCTION lapwing.count_blocks(p_ledger_id text, p_first integer, p_last integer, p_loss numeric, p_delta numeric, p_pure numeric,
    p_person_loss numeric, p_person_delta numeric, p_person_pure numeric) RETURNS void LANGUAGE sql AS $$
    UPDATE lapwing.data_set SET blocks_first = least(blocks_first, p_first), blocks_last = greatest(blocks_last, p_last),
            blocks_loss = blocks_loss + p_loss, blocks_delta = blocks_delta + p_delta, blocks_pure = blocks_pure + p_pure,
            persons_loss = persons_loss + p_person_loss, persons_delta = persons_delta + p_person_delta,
            persons_pure = persons_pure + p_person_pure
        WHERE ledger_id = p_ledger_id
$$;

-- What an entry says about blocks: their period, and the most epsilon that one person may lose over a year.
CREATE FUNCTION lapwing.blocks_evidence(ds lapwing.data_set) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT ds.blocks_every || ' ' || coalesce(ds.person_budget::jsonb ->> 'epsilon', 'none')
$$;

-- The totals with which charges are compared are those of the budgets in ds.
CREATE FUNCTION lapwing.set_tree_totals(ds lapwing.data_set) RETURNS void LANGUAGE sql AS $$
    UPDATE lapwing.block_tree SET loss_total = ds.loss_total, delta_total = ds.delta_total, pure_total = ds.pure_total
        WHERE ledger_id = ds.ledger_id AND tree = 1;
    UPDATE lapwing.block_tree SET loss_total = (ds.person_budget::jsonb ->> 'loss_total')::numeric,
            delta_total = (ds.person_budget::jsonb ->> 'delta_total')::numeric, pure_total = (ds.person_budget::jsonb ->> 'pure_total')::numeric
        WHERE ledger_id = ds.ledger_id AND tree = 2
$$;

-- Give a data set blocks that have spent nothing; the caller writes the entry with what it returns.
CREATE FUNCTION lapwing.begin_blocks(ds lapwing.data_set, p_every text, p_person_budget text) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lapwing.data_set SET blocks_every = p_every, person_budget = p_person_budget, blocks_loss = 0, blocks_delta = 0, blocks_pure = 0,
            persons_loss = 0, persons_delta = 0, persons_pure = 0
        WHERE ledger_id = ds.ledger_id;
    ds.blocks_every := p_every;
    ds.person_budget := p_person_budget;
    INSERT INTO lapwing.block_tree (ledger_id, tree) VALUES (ds.ledger_id, 1), (ds.ledger_id, 2);
    PERFORM lapwing.set_tree_totals(ds);
    RETURN ds;
END $$;

-- The outcome that refuses another cap, or 'done'. A higher cap, or none, promises a person less: like a higher budget it takes two people.
CREATE FUNCTION lapwing.cap_outcome(ds lapwing.data_set, p_person_budget text, p_second boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before numeric := (ds.person_budget::jsonb ->> 'loss_total')::numeric;
    after numeric := (p_person_budget::jsonb ->> 'loss_total')::numeric;
    more boolean := (ds.person_budget::jsonb ->> 'pure_total')::numeric < (p_person_budget::jsonb ->> 'pure_total')::numeric;
BEGIN
    IF ds.blocks_every IS NULL THEN
        RETURN 'blocks-undeclared';
    ELSIF p_person_budget IS NOT NULL AND lapwing.tree_exceeds(ds.ledger_id, 2, -65536, 65535, 0, 0, 0, after,
            (p_person_budget::jsonb ->> 'delta_total')::numeric, (p_person_budget::jsonb ->> 'pure_total')::numeric) THEN
        RETURN 'cap-below-lost';
    ELSIF before IS NOT NULL AND ((after <= before) IS NOT TRUE OR more IS TRUE) AND NOT p_second THEN
        RETURN 'second-person';
    END IF;
    RETURN 'done';
END $$;

CREATE FUNCTION lapwing.apply_cap(ds lapwing.data_set, p_person_budget text, p_detail text) RETURNS lapwing.data_set LANGUAGE plpgsql AS $$
BEGIN
    ds.person_budget := p_person_budget;
    PERFORM lapwing.set_tree_totals(ds);
    RETURN lapwing.append(ds, 'blocks', '', NULL, 0, 0, p_detail, lapwing.blocks_evidence(ds));
END $$;

-- The first time, p_blocks is what the blocks and the tables without time inherit, which the caller computed from what it had seen spent.
CREATE FUNCTION lapwing.declare_blocks(p_ledger_id text, p_every text, p_person_budget text, p_blocks text, p_loss_seen numeric,
    p_delta_seen numeric, p_pure_seen numeric, p_detail text, OUT outcome text, OUT state lapwing.data_set) LANGUAGE plpgsql AS $$
DECLARE
    ds lapwing.data_set := lapwing.locked(p_ledger_id);
    inherited record;
BEGIN
    state := ds;
    IF ds.blocks_every <> p_every THEN
        outcome := 'blocks-period'; RETURN;
    ELSIF ds.blocks_every IS NOT NULL THEN
        outcome := lapwing.cap_outcome(ds, p_person_budget, false);
        IF outcome = 'done' AND ds.person_budget IS DISTINCT FROM p_person_budget THEN
            state := lapwing.apply_cap(ds, p_person_budget, p_detail);
        END IF;
        RETURN;
    ELSIF ds.loss_spent <> p_loss_seen OR ds.delta_spent <> p_delta_seen OR ds.pure_spent IS DISTINCT FROM p_pure_seen THEN
        outcome := 'spent-changed'; RETURN;
    END IF;
    BEGIN
        ds := lapwing.begin_blocks(ds, p_every, p_person_budget);
        IF p_blocks IS NOT NULL THEN
            SELECT r.* INTO inherited FROM lapwing.charge_blocks(ds, p_blocks, 0, 0, 0) AS r;
            IF inherited.outcome IS NOT NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'LW010';
            END IF;
            state := lapwing.append(ds, 'blocks', '', NULL, inherited.loss, inherited.delta, p_detail, lapwing.blocks_evidence(ds),
                CASE WHEN inherited.loss > 0 OR inherited.delta > 0 THEN inherited.pure END, p_blocks);
        ELSE
            state := lapwing.append(ds, 'blocks', '', NULL, 0, 0, p_detail, lapwing.blocks_evidence(ds));
        END IF;
        outcome := 'done';
    EXCEPTION WHEN SQLSTATE 'LW010' THEN
        outcome := 'blocks-overspent';
    END;
END $$;

-- Of what was lost, what fits into a budget of which something is spent. If it does not fit, nothing is left: of two sums, the one that was
-- within its total is filled, and the other gets everything that was lost.
CREATE FUNCTION lapwing.filled(p_loss_spent numeric, p_delta_spent numeric, p_pure_spent numeric, p_loss_total numeric, p_delta_total numeric,
    p_pure_total numeric, INOUT loss numeric, INOUT delta numeric, INOUT pure numeric, OUT too_much boolean) LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    too_much := (p_delta_spent + delta > p_delta_total) IS TRUE;
    delta := least(delta, p_delta_total - p_delta_spent);
    IF lapwing.exceeds(p_loss_spent + loss, p_pure_spent + pure, p_loss_total, p_pure_total) THEN
        too_much := true;
        IF p_loss_spent >= p_loss_total AND (p_pure_spent <= p_pure_total) IS TRUE THEN
            pure := p_pure_total - p_pure_spent;
        ELSE
            loss := least(loss, p_loss_total - p_loss_spent);
        END IF;
    END IF;
END $$;

-- Charge what was lost to the blocks of a range, to each as far as its budget goes. Returns what each range of them got, as JSON, and the most.
CREATE FUNCTION lapwing.fill_tree(p_ledger_id text, p_tree integer, p_first integer, p_last integer, p_loss numeric, p_delta numeric,
    p_pure numeric, OUT o_pieces text[], OUT o_loss numeric, OUT o_delta numeric, OUT o_pure numeric) LANGUAGE plpgsql AS $$
DECLARE
    t lapwing.block_tree;
    one record;
BEGIN
    SELECT * INTO STRICT t FROM lapwing.block_tree WHERE ledger_id = p_ledger_id AND tree = p_tree;
    o_pieces := '{}'; o_loss := 0; o_delta := 0; o_pure := 0;
    FOR one IN
        WITH piece AS (
            SELECT greatest(s.first_block, p_first) AS first_block, least(s.last_block, p_last) AS last_block, f.loss, f.delta,
                CASE WHEN f.loss = 0 AND f.delta = 0 THEN coalesce(f.pure, 0) ELSE f.pure END AS pure
            FROM lapwing.tree_pieces(p_ledger_id, p_tree) AS s
            CROSS JOIN LATERAL lapwing.filled(s.loss, s.delta, s.pure, t.loss_total, t.delta_total, t.pure_total, p_loss, p_delta, p_pure) AS f
            WHERE s.first_block <= p_last AND p_first <= s.last_block
        ), run AS (
            SELECT *, row_number() OVER (ORDER BY first_block) - row_number() OVER (PARTITION BY loss, delta, pure ORDER BY first_block) AS number
            FROM piece
        )
        SELECT min(first_block) AS first_block, max(last_block) AS last_block, loss, delta, pure FROM run
        WHERE loss > 0 OR delta > 0 OR pure > 0 GROUP BY number, loss, delta, pure ORDER BY 1
    LOOP
        PERFORM lapwing.raise_tree(p_ledger_id, p_tree, one.first_block, one.last_block, one.loss, one.delta, one.pure);
        o_pieces := o_pieces || format('[%s,%s,"%s","%s",%s]', one.first_block, one.last_block, one.loss, one.delta,
            coalesce('"' || one.pure || '"', 'null'));
        o_loss := greatest(o_loss, one.loss); o_delta := greatest(o_delta, one.delta);
        o_pure := CASE WHEN o_pure IS NOT NULL AND one.pure IS NOT NULL THEN greatest(o_pure, one.pure) END;
    END LOOP;
END $$;

-- After a restore of an older state: charge the blocks and years what was lost, under the terms in the anchor. Returns ds and what was
-- charged, for the entry.
CREATE FUNCTION lapwing.restore_blocks(ds lapwing.data_set, p_blocks text, p_every text, p_person_budget text, p_detail text,
    OUT o_state lapwing.data_set, OUT o_charged text) LANGUAGE plpgsql AS $$
DECLARE
    of_blocks text[] := '{}';
    hull_first integer;
    hull_last integer;
    loss numeric := 0;
    delta numeric := 0;
    pure numeric := 0;
    part record;
    done record;
BEGIN
    IF ds.blocks_every IS NULL THEN
        ds := lapwing.begin_blocks(ds, p_every, p_person_budget);
        ds := lapwing.append(ds, 'blocks', '', NULL, 0, 0, p_detail, lapwing.blocks_evidence(ds));
    ELSIF ds.person_budget IS DISTINCT FROM p_person_budget AND lapwing.cap_outcome(ds, p_person_budget, true) = 'done' THEN
        ds := lapwing.apply_cap(ds, p_person_budget, p_detail);
    END IF;
    FOR part IN SELECT * FROM lapwing.block_parts(p_blocks) AS r WHERE r.first_block IS NOT NULL ORDER BY r.first_block LOOP
        SELECT f.* INTO done
            FROM lapwing.fill_tree(ds.ledger_id, 1, part.first_block, part.last_block, part.loss, part.delta, part.pure) AS f;
        of_blocks := of_blocks || done.o_pieces;
        hull_first := least(hull_first, part.first_block); hull_last := greatest(hull_last, part.last_block);
        loss := greatest(loss, done.o_loss); delta := greatest(delta, done.o_delta);
        pure := CASE WHEN pure IS NOT NULL AND done.o_pure IS NOT NULL THEN greatest(pure, done.o_pure) END;
    END LOOP;
    SELECT f.* INTO done FROM lapwing.fill_tree(ds.ledger_id, 2, -65536, 65535, (p_blocks::jsonb #>> '{person,0}')::lapwing.amount,
        (p_blocks::jsonb #>> '{person,1}')::lapwing.amount, (p_blocks::jsonb #>> '{person,2}')::lapwing.amount) AS f;
    PERFORM lapwing.count_blocks(ds.ledger_id, hull_first, hull_last, loss, delta, pure, done.o_loss, done.o_delta, done.o_pure);
    o_charged := '{"hull":[' || coalesce(hull_first || ',' || hull_last, '') || '],"ranges":[' || array_to_string(of_blocks, ',') || '],"years":['
        || array_to_string(done.o_pieces, ',') || ']}';
    o_state := ds;
END $$;
