-- What curators may read. They may read no table: everything else (the reservations and epochs of others, proposals, the terms of other
-- analysts) is for owners and monitors.

CREATE FUNCTION lapwing.find_ledger(p_source_id text, p_fingerprint text, OUT agrees boolean, OUT known text[], OUT state lapwing.data_set)
RETURNS SETOF record LANGUAGE sql STABLE AS $$
    SELECT e.chained = d.head, (SELECT array_agg(f.source_id) FROM lapwing.fingerprint f WHERE f.fingerprint = p_fingerprint), d
    FROM lapwing.data_set d LEFT JOIN lapwing.entry e ON e.ledger_id = d.ledger_id AND e.entry_id = d.entries
    WHERE d.source_id = p_source_id AND NOT d.superseded
$$;

CREATE FUNCTION lapwing.current_state(p_ledger_id text) RETURNS SETOF lapwing.data_set LANGUAGE sql STABLE AS $$
    SELECT * FROM lapwing.data_set WHERE ledger_id = p_ledger_id
$$;

CREATE FUNCTION lapwing.has_entry(p_ledger_id text, p_entry_id bigint, p_head text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM lapwing.entry WHERE ledger_id = p_ledger_id AND entry_id = p_entry_id AND chained = p_head)
$$;

CREATE FUNCTION lapwing.live_workers(p_ledger_id text, OUT epoch text, OUT host text, OUT boot text, OUT namespace text, OUT pid bigint,
    OUT started text) RETURNS SETOF record LANGUAGE sql STABLE AS $$
    SELECT w.epoch, w.host, w.boot, w.namespace, w.pid, w.started FROM lapwing.worker w
    WHERE w.ledger_id = p_ledger_id AND w.ended_at IS NULL
$$;

CREATE FUNCTION lapwing.newest_entries(p_ledger_id text, p_limit bigint) RETURNS SETOF lapwing.entry LANGUAGE sql STABLE AS $$
    SELECT * FROM lapwing.entry WHERE ledger_id = p_ledger_id ORDER BY entry_id DESC LIMIT p_limit
$$;

-- Without what was bought for blocks. p_analyst NULL: everything. Else without the answers that others paid for, unless answers are shared.
CREATE FUNCTION lapwing.bought(p_ledger_id text, p_version bigint, p_analyst text, p_limit bigint, OUT summary text, OUT loss numeric,
    OUT delta numeric, OUT pure numeric, OUT digest text, OUT purchase text) RETURNS SETOF record LANGUAGE sql STABLE AS $$
    SELECT c.summary, c.loss, c.delta, c.pure, c.digest, c.purchase FROM lapwing.charge c JOIN lapwing.data_set d USING (ledger_id)
    WHERE c.ledger_id = p_ledger_id AND c.version = p_version AND c.state = 'committed'
        AND (left(c.purchase, 15) = '{"kind":"block"') IS NOT TRUE AND (p_analyst IS NULL OR d.answers_shared OR c.analyst = p_analyst)
    ORDER BY c.charge_id DESC LIMIT p_limit
$$;

-- What was bought for blocks, where its record begins within a range: in the order of names, and of several with one name the first that was
-- committed (not by a join: planned for few rows, it may read all entries for each). The name is what the eighth quote ends. p_analyst NULL:
-- everything. Else what find_answer would find.
CREATE FUNCTION lapwing.named(p_ledger_id text, p_version bigint, p_first text, p_after text, p_analyst text, OUT begins text,
    OUT charge_id bigint, OUT payload bytea, OUT payload_digest text) RETURNS SETOF record LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (split_part(left(c.purchase, 200) COLLATE "C", '"', 8)) left(c.purchase, 200), c.charge_id, c.payload, c.payload_digest
    FROM lapwing.charge c JOIN lapwing.data_set d USING (ledger_id)
    WHERE c.ledger_id = p_ledger_id AND c.version = p_version AND c.state = 'committed' AND left(c.purchase, 15) = '{"kind":"block"'
        AND left(c.purchase, 200) COLLATE "C" >= p_first AND left(c.purchase, 200) COLLATE "C" < p_after
        AND (p_analyst IS NULL OR (NOT d.closed AND (d.answers_shared OR c.analyst = p_analyst) AND EXISTS (
            SELECT FROM lapwing.analyst a WHERE a.ledger_id = p_ledger_id AND a.analyst = p_analyst AND NOT a.suspended)))
    ORDER BY split_part(left(c.purchase, 200) COLLATE "C", '"', 8), (SELECT e.entry_id FROM lapwing.entry e
        WHERE e.ledger_id = c.ledger_id AND e.charge_id = c.charge_id AND e.kind = 'commit')
$$;

CREATE FUNCTION lapwing.purchase_of(p_ledger_id text, p_charge_id bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT purchase FROM lapwing.charge WHERE ledger_id = p_ledger_id AND charge_id = p_charge_id
$$;

-- What blocks have spent, and the most that one person lost over a year: the row without numbers. No row: no blocks.
CREATE FUNCTION lapwing.block_spending(p_ledger_id text, OUT first_block integer, OUT last_block integer, OUT loss numeric, OUT delta numeric,
    OUT pure numeric) RETURNS SETOF record LANGUAGE sql STABLE AS $$
    SELECT s.* FROM lapwing.tree_pieces(p_ledger_id, 1) AS s WHERE s.loss > 0 OR s.delta > 0 OR s.pure > 0
    UNION ALL
    SELECT NULL, NULL, t.loss_most, t.delta_most, t.pure_most FROM lapwing.block_tree AS t WHERE t.ledger_id = p_ledger_id AND t.tree = 2
$$;

-- The statement of the receipt for a committed charge.
CREATE FUNCTION lapwing.committed(p_ledger_id text, p_charge_id bigint, OUT analyst text, OUT request_id text, OUT digest text,
    OUT payload_digest text, OUT loss numeric, OUT delta numeric, OUT entry_id bigint, OUT chained text, OUT at text)
RETURNS SETOF record LANGUAGE sql STABLE AS $$
    SELECT c.analyst, c.request_id, c.digest, c.payload_digest, c.loss, c.delta, e.entry_id, e.chained, e.at
    FROM lapwing.charge c JOIN lapwing.entry e ON e.ledger_id = c.ledger_id AND e.charge_id = c.charge_id AND e.kind = 'commit'
    WHERE c.ledger_id = p_ledger_id AND c.charge_id = p_charge_id
$$;

CREATE FUNCTION lapwing.share_of(p_ledger_id text, p_analyst text, OUT loss_total numeric, OUT delta_total numeric, OUT pure_total numeric,
    OUT loss_spent numeric, OUT delta_spent numeric, OUT pure_spent numeric) RETURNS SETOF record LANGUAGE sql STABLE AS $$
    SELECT a.loss_total, a.delta_total, a.pure_total, a.loss_spent, a.delta_spent, a.pure_spent FROM lapwing.analyst a
    WHERE a.ledger_id = p_ledger_id AND a.analyst = p_analyst AND NOT a.suspended
$$;
