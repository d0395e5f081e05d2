-- Pure amounts: what an account with an order also adds up, and is enough to be within (docs/proofs/union-of-filters.md).
--
-- A pure amount that is NULL is more than any number, and so is what it is added to. What is there was charged without one. Sums start at 0.
-- A total that is NULL is that of an account without an order, or of a limit in which only the loss counts.

ALTER TABLE lapwing.data_set
    ADD COLUMN pure_spent lapwing.amount,
    ADD COLUMN pure_total lapwing.amount,
    ADD COLUMN pure_ceiling lapwing.amount,
    ADD COLUMN statement_pure_max lapwing.amount,
    ADD COLUMN day_pure_max lapwing.amount,
    ADD COLUMN day_pure numeric;
ALTER TABLE lapwing.data_set ALTER COLUMN pure_spent SET DEFAULT 0, ALTER COLUMN day_pure SET DEFAULT 0;
ALTER TABLE lapwing.analyst_group ADD COLUMN pure_total lapwing.amount, ADD COLUMN pure_spent lapwing.amount;
ALTER TABLE lapwing.analyst_group ALTER COLUMN pure_spent SET DEFAULT 0;
ALTER TABLE lapwing.analyst
    ADD COLUMN pure_total lapwing.amount,
    ADD COLUMN pure_spent lapwing.amount,
    ADD COLUMN day_pure_max lapwing.amount,
    ADD COLUMN day_pure numeric;
ALTER TABLE lapwing.analyst ALTER COLUMN pure_spent SET DEFAULT 0, ALTER COLUMN day_pure SET DEFAULT 0;
ALTER TABLE lapwing.charge ADD COLUMN pure lapwing.amount;
ALTER TABLE lapwing.entry ADD COLUMN pure lapwing.amount;
ALTER TABLE lapwing.proposal ADD COLUMN pure_total lapwing.amount;

DO $$
DECLARE rule record;
BEGIN
    FOR rule IN SELECT conname, conrelid::pg_catalog.regclass AS of_table FROM pg_catalog.pg_constraint
        WHERE conrelid IN ('lapwing.data_set'::pg_catalog.regclass, 'lapwing.analyst'::pg_catalog.regclass,
            'lapwing.analyst_group'::pg_catalog.regclass) AND contype = 'c' AND pg_catalog.pg_get_constraintdef(oid) LIKE '%loss_spent%' LOOP
        EXECUTE pg_catalog.format('ALTER TABLE %s DROP CONSTRAINT %I', rule.of_table, rule.conname);
    END LOOP;
END $$;
ALTER TABLE lapwing.data_set
    ADD CHECK ((loss_spent <= loss_total OR (pure_spent <= pure_total) IS TRUE) AND loss_total <= loss_ceiling
        AND (pure_total <= pure_ceiling) IS NOT FALSE AND (pure_total IS NULL) = (pure_ceiling IS NULL));
ALTER TABLE lapwing.analyst ADD CHECK (loss_spent <= loss_total OR (pure_spent <= pure_total) IS TRUE);
ALTER TABLE lapwing.analyst_group ADD CHECK (loss_spent <= loss_total OR (pure_spent <= pure_total) IS TRUE);

CREATE OR REPLACE FUNCTION lapwing.require_totals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.budget::jsonb ->> 'loss_total')::numeric <> NEW.loss_total OR (NEW.budget::jsonb ->> 'delta_total')::numeric <> NEW.delta_total
        OR (NEW.ceiling::jsonb ->> 'loss_total')::numeric <> NEW.loss_ceiling
        OR (NEW.ceiling::jsonb ->> 'delta_total')::numeric <> NEW.delta_ceiling
        OR (NEW.budget::jsonb ->> 'pure_total')::numeric IS DISTINCT FROM NEW.pure_total
        OR (NEW.ceiling::jsonb ->> 'pure_total')::numeric IS DISTINCT FROM NEW.pure_ceiling THEN
        RAISE EXCEPTION 'the totals are not those of the budget' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION lapwing.require_growth() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.loss_spent < OLD.loss_spent OR NEW.delta_spent < OLD.delta_spent OR NEW.entries < OLD.entries OR NEW.charges < OLD.charges
        OR NEW.pure_spent < OLD.pure_spent OR (OLD.pure_spent IS NULL AND NEW.pure_spent IS NOT NULL) THEN
        RAISE EXCEPTION 'what was counted only grows' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;

DROP TRIGGER data_set_changed ON lapwing.data_set;
CREATE TRIGGER data_set_changed BEFORE UPDATE OF budget, ceiling, loss_total, delta_total, loss_ceiling, delta_ceiling, pure_total, pure_ceiling
    ON lapwing.data_set FOR EACH ROW
    WHEN (NEW.budget <> OLD.budget OR NEW.ceiling <> OLD.ceiling OR NEW.loss_total <> OLD.loss_total OR NEW.delta_total <> OLD.delta_total
        OR NEW.loss_ceiling <> OLD.loss_ceiling OR NEW.delta_ceiling <> OLD.delta_ceiling
        OR NEW.pure_total IS DISTINCT FROM OLD.pure_total OR NEW.pure_ceiling IS DISTINCT FROM OLD.pure_ceiling)
    EXECUTE FUNCTION lapwing.require_totals();

DROP TRIGGER data_set_only_grows ON lapwing.data_set;
CREATE TRIGGER data_set_only_grows BEFORE UPDATE OF loss_spent, delta_spent, pure_spent, entries, charges ON lapwing.data_set FOR EACH ROW
    EXECUTE FUNCTION lapwing.require_growth();

-- Whether there is an order, and so a second sum, is said once.
DROP TRIGGER data_set_stays ON lapwing.data_set;
CREATE TRIGGER data_set_stays BEFORE UPDATE OF ledger_id, source_id, loss_ceiling, delta_ceiling, pure_ceiling, superseded ON lapwing.data_set
    FOR EACH ROW WHEN (NEW.ledger_id <> OLD.ledger_id OR NEW.source_id <> OLD.source_id
        OR NEW.loss_ceiling < OLD.loss_ceiling OR NEW.delta_ceiling < OLD.delta_ceiling OR NEW.pure_ceiling < OLD.pure_ceiling
        OR (NEW.pure_ceiling IS NULL) <> (OLD.pure_ceiling IS NULL) OR (OLD.superseded AND NOT NEW.superseded))
    EXECUTE FUNCTION lapwing.refuse_change();

DROP TRIGGER charge_stays ON lapwing.charge;
CREATE TRIGGER charge_stays BEFORE UPDATE OF ledger_id, charge_id, analyst, group_name, request_id, digest, version, block, summary, loss, delta, pure,
    epoch, nonce ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();

DROP TRIGGER proposal_decided_once ON lapwing.proposal;
CREATE TRIGGER proposal_decided_once BEFORE UPDATE ON lapwing.proposal FOR EACH ROW
    WHEN (OLD.state <> 'open' OR NEW.state = 'open' OR NEW.proposed_by <> OLD.proposed_by OR NEW.proposed_role <> OLD.proposed_role
        OR NEW.budget <> OLD.budget OR NEW.loss_total <> OLD.loss_total OR NEW.delta_total <> OLD.delta_total
        OR NEW.pure_total IS DISTINCT FROM OLD.pure_total OR NEW.kind <> OLD.kind OR NEW.target <> OLD.target)
    EXECUTE FUNCTION lapwing.refuse_change();
