-- Anchors that a ledger was used with, and who proposed what in whose session.

ALTER TABLE lapwing.data_set
    -- The names of the anchors, in order. While there are none nobody is served: the owner registers those there are.
    ADD COLUMN anchors text[] NOT NULL DEFAULT '{}',
    -- How far every anchor certainly is. One that is behind this is not the anchor that was used, but an older copy of it.
    ADD COLUMN anchored bigint NOT NULL DEFAULT 0,
    -- Of new data sets: ten workers, in ten years, until the owner re-opens. Those there are keep what was set for them.
    ALTER COLUMN lost_workers_max SET DEFAULT 10,
    ALTER COLUMN lost_workers_seconds SET DEFAULT 315360000;

ALTER TABLE lapwing.worker ADD COLUMN anchors text[] NOT NULL DEFAULT '{}';

ALTER TABLE lapwing.proposal ADD COLUMN proposed_role text NOT NULL DEFAULT '';
DO $$
DECLARE rule record;
BEGIN
    FOR rule IN SELECT conname FROM pg_catalog.pg_constraint WHERE conrelid = 'lapwing.proposal'::pg_catalog.regclass
        AND pg_catalog.pg_get_constraintdef(oid) LIKE '%''ceiling''%' OR conrelid = 'lapwing.proposal'::pg_catalog.regclass
        AND pg_catalog.pg_get_constraintdef(oid) LIKE '%target%' LOOP
        EXECUTE pg_catalog.format('ALTER TABLE lapwing.proposal DROP CONSTRAINT %I', rule.conname);
    END LOOP;
END $$;
ALTER TABLE lapwing.proposal
    ADD CHECK (kind IN ('budget', 'ceiling', 'analyst', 'anchor')),
    ADD CHECK ((kind IN ('analyst', 'anchor')) = (target <> ''));

DROP TRIGGER proposal_decided_once ON lapwing.proposal;
CREATE TRIGGER proposal_decided_once BEFORE UPDATE ON lapwing.proposal FOR EACH ROW
    WHEN (OLD.state <> 'open' OR NEW.state = 'open' OR NEW.proposed_by <> OLD.proposed_by OR NEW.proposed_role <> OLD.proposed_role
        OR NEW.budget <> OLD.budget OR NEW.loss_total <> OLD.loss_total OR NEW.delta_total <> OLD.delta_total OR NEW.kind <> OLD.kind
        OR NEW.target <> OLD.target)
    EXECUTE FUNCTION lapwing.refuse_change();
