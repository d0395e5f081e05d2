-- The tables of the ledger, with the rules the database itself enforces.
--
-- The rules repeat what the functions decide, so that a mistake in a function ends in a refused change and not in a wrong ledger: what is
-- spent never passes the total and never goes down, a key has one charge, a charge moves once, and entries are only ever appended.

-- Whole ledger units. NaN is a value of numeric and greater than every number, so the upper end also keeps it out.
CREATE DOMAIN lapwing.amount AS numeric(40, 0) CHECK (VALUE >= 0 AND VALUE < 1e40);

-- Rules of single columns are rules of their types, and a trigger names the columns it watches: PostgreSQL reads every other CHECK of a table
-- and every WHEN of its triggers anew with each statement, which took a third of the time of a reservation.
CREATE DOMAIN lapwing.positive_amount AS numeric(40, 0) CHECK (VALUE > 0 AND VALUE < 1e40);
CREATE DOMAIN lapwing.version AS bigint CHECK (VALUE >= 0);
CREATE DOMAIN lapwing.positive_integer AS integer CHECK (VALUE >= 1);
-- Later: the time block a charge belongs to. Budgets per block are sound only for units of (user, block) or rows.
CREATE DOMAIN lapwing.block AS text CHECK (VALUE = '');
CREATE TYPE lapwing.charge_state AS ENUM ('reserved', 'committed', 'forfeited');

CREATE TABLE lapwing.data_set (
    ledger_id text PRIMARY KEY,
    source_id text NOT NULL,
    superseded boolean NOT NULL DEFAULT false,
    budget text NOT NULL,
    ceiling text NOT NULL,
    loss_spent lapwing.amount NOT NULL DEFAULT 0,
    delta_spent lapwing.amount NOT NULL DEFAULT 0,
    loss_total lapwing.amount NOT NULL,
    delta_total lapwing.amount NOT NULL,
    loss_ceiling lapwing.amount NOT NULL,
    delta_ceiling lapwing.amount NOT NULL,
    closed boolean NOT NULL DEFAULT false,
    entries bigint NOT NULL DEFAULT 0,
    charges bigint NOT NULL DEFAULT 0,
    head text NOT NULL,
    -- Policy. A limit that is NULL is no limit.
    statement_loss_max lapwing.amount,
    day_loss_max lapwing.amount,
    day date,
    day_loss numeric NOT NULL DEFAULT 0,
    answers_shared boolean NOT NULL DEFAULT true,
    lost_workers_max lapwing.positive_integer NOT NULL DEFAULT 3,
    lost_workers_seconds lapwing.positive_integer NOT NULL DEFAULT 3600,
    CHECK (loss_spent <= loss_total AND loss_total <= loss_ceiling),
    CHECK (delta_spent <= delta_total AND delta_total <= delta_ceiling)
) WITH (fillfactor = 50);  -- this row is rewritten with every charge: room for its next versions on the same page

-- A source has one ledger. A second one is the owner's override and supersedes the first.
CREATE UNIQUE INDEX data_set_of_source ON lapwing.data_set (source_id) WHERE NOT superseded;

CREATE TABLE lapwing.fingerprint (
    fingerprint text NOT NULL,
    source_id text NOT NULL,
    PRIMARY KEY (fingerprint, source_id)
);

-- Sub-budgets of analysts and groups may together promise more than the data set has: its own total always binds.
CREATE TABLE lapwing.analyst_group (
    ledger_id text NOT NULL REFERENCES lapwing.data_set,
    group_name text NOT NULL,
    loss_total lapwing.amount,
    delta_total lapwing.amount,
    loss_spent lapwing.amount NOT NULL DEFAULT 0,
    delta_spent lapwing.amount NOT NULL DEFAULT 0,
    PRIMARY KEY (ledger_id, group_name),
    CHECK (loss_spent <= loss_total),
    CHECK (delta_spent <= delta_total)
) WITH (fillfactor = 70);

CREATE TABLE lapwing.analyst (
    ledger_id text NOT NULL REFERENCES lapwing.data_set,
    analyst text NOT NULL,
    group_name text,
    suspended boolean NOT NULL DEFAULT false,
    loss_total lapwing.amount,
    delta_total lapwing.amount,
    loss_spent lapwing.amount NOT NULL DEFAULT 0,
    delta_spent lapwing.amount NOT NULL DEFAULT 0,
    day_loss_max lapwing.amount,
    day date,
    day_loss numeric NOT NULL DEFAULT 0,
    PRIMARY KEY (ledger_id, analyst),
    FOREIGN KEY (ledger_id, group_name) REFERENCES lapwing.analyst_group,
    CHECK (loss_spent <= loss_total),
    CHECK (delta_spent <= delta_total)
) WITH (fillfactor = 70);

CREATE TABLE lapwing.worker (
    epoch text PRIMARY KEY,
    ledger_id text NOT NULL REFERENCES lapwing.data_set,
    host text NOT NULL,
    boot text NOT NULL,
    namespace text NOT NULL,
    pid bigint NOT NULL,
    started text NOT NULL,
    lease_until timestamptz NOT NULL,
    ended_at timestamptz,
    ended_how text CHECK (ended_how IN ('disconnected', 'lost')),
    forfeited integer NOT NULL DEFAULT 0,
    CHECK ((ended_at IS NULL) = (ended_how IS NULL))
);

CREATE INDEX worker_active ON lapwing.worker (ledger_id) WHERE ended_at IS NULL;
CREATE INDEX worker_lost ON lapwing.worker (ledger_id, ended_at) WHERE ended_how = 'lost' AND forfeited > 0;

-- No foreign keys on the two tables that grow with every charge: only the functions insert here, with the keys of rows they hold locked, and
-- nothing is ever deleted.
CREATE TABLE lapwing.charge (
    ledger_id text NOT NULL,
    charge_id bigint NOT NULL,
    analyst text NOT NULL,
    group_name text,
    request_id text NOT NULL,
    digest text NOT NULL,
    version lapwing.version NOT NULL,
    block lapwing.block NOT NULL DEFAULT '',
    summary text NOT NULL,
    loss lapwing.positive_amount NOT NULL,
    delta lapwing.amount NOT NULL,
    epoch text NOT NULL,
    nonce text NOT NULL,
    state lapwing.charge_state NOT NULL DEFAULT 'reserved',
    payload bytea,
    payload_digest text,
    PRIMARY KEY (ledger_id, charge_id),
    UNIQUE (ledger_id, analyst, request_id),
    CHECK ((state = 'committed') = (payload IS NOT NULL) AND (state = 'committed') = (payload_digest IS NOT NULL))
) WITH (fillfactor = 80);

CREATE INDEX charge_by_digest ON lapwing.charge (ledger_id, digest, charge_id) WHERE state = 'committed';
CREATE INDEX charge_open ON lapwing.charge (ledger_id, epoch) WHERE state = 'reserved';

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
    chained text NOT NULL,
    PRIMARY KEY (ledger_id, entry_id)
);

-- A receipt names the entry that committed its answer.
CREATE UNIQUE INDEX entry_commits ON lapwing.entry (ledger_id, charge_id) WHERE kind = 'commit';

CREATE TABLE lapwing.proposal (
    ledger_id text NOT NULL REFERENCES lapwing.data_set,
    proposal_id bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('budget', 'ceiling', 'analyst')),
    target text NOT NULL,
    proposed_by text NOT NULL,
    budget text NOT NULL,
    loss_total lapwing.amount NOT NULL,
    delta_total lapwing.amount NOT NULL,
    reason text NOT NULL,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'approved', 'denied')),
    decided_by text,
    PRIMARY KEY (ledger_id, proposal_id),
    CHECK ((kind = 'analyst') = (target <> '')),
    CHECK ((state = 'open') = (decided_by IS NULL)),
    CHECK (decided_by <> proposed_by)  -- a second person
);

CREATE FUNCTION lapwing.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed in this way', TG_TABLE_NAME USING ERRCODE = 'LW009';
END $$;

-- The totals that are compared are those of the budget that was granted. Not a CHECK: those are evaluated with every charge.
CREATE FUNCTION lapwing.require_totals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.budget::jsonb ->> 'loss_total')::numeric <> NEW.loss_total OR (NEW.budget::jsonb ->> 'delta_total')::numeric <> NEW.delta_total
        OR (NEW.ceiling::jsonb ->> 'loss_total')::numeric <> NEW.loss_ceiling
        OR (NEW.ceiling::jsonb ->> 'delta_total')::numeric <> NEW.delta_ceiling THEN
        RAISE EXCEPTION 'the totals are not those of the budget' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER data_set_made BEFORE INSERT ON lapwing.data_set FOR EACH ROW EXECUTE FUNCTION lapwing.require_totals();
CREATE TRIGGER data_set_changed BEFORE UPDATE OF budget, ceiling, loss_total, delta_total, loss_ceiling, delta_ceiling ON lapwing.data_set
    FOR EACH ROW WHEN (NEW.budget <> OLD.budget OR NEW.ceiling <> OLD.ceiling OR NEW.loss_total <> OLD.loss_total OR NEW.delta_total <> OLD.delta_total
        OR NEW.loss_ceiling <> OLD.loss_ceiling OR NEW.delta_ceiling <> OLD.delta_ceiling)
    EXECUTE FUNCTION lapwing.require_totals();

CREATE TRIGGER entry_fixed BEFORE UPDATE OR DELETE ON lapwing.entry FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER entry_kept BEFORE TRUNCATE ON lapwing.entry FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER charge_kept BEFORE DELETE ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER charge_not_emptied BEFORE TRUNCATE ON lapwing.charge FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER data_set_kept BEFORE DELETE ON lapwing.data_set FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER data_set_not_emptied BEFORE TRUNCATE ON lapwing.data_set FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER fingerprint_kept BEFORE UPDATE OR DELETE ON lapwing.fingerprint FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER worker_kept BEFORE DELETE ON lapwing.worker FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER proposal_kept BEFORE DELETE ON lapwing.proposal FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();

CREATE FUNCTION lapwing.require_growth() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.loss_spent < OLD.loss_spent OR NEW.delta_spent < OLD.delta_spent OR NEW.entries < OLD.entries OR NEW.charges < OLD.charges THEN
        RAISE EXCEPTION 'what was counted only grows' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION lapwing.require_reserved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> 'reserved' THEN
        RAISE EXCEPTION 'a charge starts reserved' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER data_set_only_grows BEFORE UPDATE OF loss_spent, delta_spent, entries, charges ON lapwing.data_set FOR EACH ROW
    EXECUTE FUNCTION lapwing.require_growth();
CREATE TRIGGER data_set_stays BEFORE UPDATE OF ledger_id, source_id, loss_ceiling, delta_ceiling, superseded ON lapwing.data_set FOR EACH ROW
    WHEN (NEW.ledger_id <> OLD.ledger_id OR NEW.source_id <> OLD.source_id
        OR NEW.loss_ceiling < OLD.loss_ceiling OR NEW.delta_ceiling < OLD.delta_ceiling OR (OLD.superseded AND NOT NEW.superseded))
    EXECUTE FUNCTION lapwing.refuse_change();

CREATE TRIGGER charge_starts_reserved BEFORE INSERT ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.require_reserved();
CREATE TRIGGER charge_moves_once BEFORE UPDATE OF state, payload, payload_digest ON lapwing.charge FOR EACH ROW
    WHEN (OLD.state <> 'reserved' OR NEW.state = 'reserved') EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER charge_stays BEFORE UPDATE OF ledger_id, charge_id, analyst, group_name, request_id, digest, version, block, summary, loss, delta,
    epoch, nonce ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();

CREATE TRIGGER worker_ends_once BEFORE UPDATE ON lapwing.worker FOR EACH ROW
    WHEN (OLD.ended_at IS NOT NULL OR NEW.epoch <> OLD.epoch OR NEW.ledger_id <> OLD.ledger_id)
    EXECUTE FUNCTION lapwing.refuse_change();

CREATE TRIGGER proposal_decided_once BEFORE UPDATE ON lapwing.proposal FOR EACH ROW
    WHEN (OLD.state <> 'open' OR NEW.state = 'open' OR NEW.proposed_by <> OLD.proposed_by OR NEW.budget <> OLD.budget
        OR NEW.loss_total <> OLD.loss_total OR NEW.delta_total <> OLD.delta_total OR NEW.kind <> OLD.kind OR NEW.target <> OLD.target)
    EXECUTE FUNCTION lapwing.refuse_change();
