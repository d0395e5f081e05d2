-- Blocks of time. Each has the budget of the data set, and what is spent in data_set is the balance of the tables without time.
--
-- The balances of blocks are a tree over their numbers: tree 1. What one person loses over a year is another, over the last blocks of years:
-- tree 2. A node of level n stands for 8^n blocks and has eight parts, each of 8^(n-1). A part's own amounts were charged to all its blocks;
-- its most are the most that its own and lower amounts add up to for any of them. Where a node is not there, nothing was charged below.
-- An amount of pure epsilon that is NULL is more than any number, as elsewhere.

CREATE DOMAIN lapwing.period AS text CHECK (VALUE IN ('day', 'week', 'month'));
CREATE DOMAIN lapwing.tree AS integer CHECK (VALUE IN (1, 2));
CREATE DOMAIN lapwing.tree_level AS integer CHECK (VALUE BETWEEN 1 AND 6);

ALTER TABLE lapwing.data_set
    -- NULL: the data set has no blocks. Else their period, and the budget of one person over a year: NULL if the owner sets no cap.
    ADD COLUMN blocks_every lapwing.period,
    ADD COLUMN person_budget text,
    -- What a restored database needs: the blocks that were ever charged lie between these two, and the sums over all charges of the most that
    -- a block paid, and of what one person lost.
    ADD COLUMN blocks_first integer,
    ADD COLUMN blocks_last integer,
    ADD COLUMN blocks_loss lapwing.amount,
    ADD COLUMN blocks_delta lapwing.amount,
    ADD COLUMN blocks_pure lapwing.amount,
    ADD COLUMN persons_loss lapwing.amount,
    ADD COLUMN persons_delta lapwing.amount,
    ADD COLUMN persons_pure lapwing.amount;

-- What blocks of time paid for a charge, and one person: JSON (lapwing.ledger.amounts). The amounts beside it are then of the tables without
-- time only. Entries that are there have none, and stay as they are hashed.
ALTER TABLE lapwing.entry ADD COLUMN blocks text;

CREATE TABLE lapwing.block_tree (
    ledger_id text NOT NULL REFERENCES lapwing.data_set,
    tree lapwing.tree NOT NULL,
    -- Those of the budget of a block or of a person, with which charges are compared. All of them are NULL where there is no cap.
    loss_total lapwing.amount,
    delta_total lapwing.amount,
    pure_total lapwing.amount,
    loss_most lapwing.amount NOT NULL DEFAULT 0,
    delta_most lapwing.amount NOT NULL DEFAULT 0,
    pure_most lapwing.amount DEFAULT 0,
    PRIMARY KEY (ledger_id, tree),
    -- With an order, one block may be within by its loss and another by its pure epsilon: only the tree can say.
    CHECK (loss_most <= loss_total OR pure_total IS NOT NULL),
    CHECK (delta_most <= delta_total)
) WITH (fillfactor = 50);

CREATE TABLE lapwing.block_node (
    ledger_id text NOT NULL,
    tree lapwing.tree NOT NULL,
    tree_level lapwing.tree_level NOT NULL,
    place integer NOT NULL,
    loss_own lapwing.amount[] NOT NULL,
    delta_own lapwing.amount[] NOT NULL,
    pure_own lapwing.amount[] NOT NULL,
    loss_most lapwing.amount[] NOT NULL,
    delta_most lapwing.amount[] NOT NULL,
    pure_most lapwing.amount[] NOT NULL,
    PRIMARY KEY (ledger_id, tree, tree_level, place)
) WITH (fillfactor = 70);

CREATE FUNCTION lapwing.require_block_growth() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.blocks_first > OLD.blocks_first OR NEW.blocks_last < OLD.blocks_last
        OR (NEW.blocks_first IS NULL AND OLD.blocks_first IS NOT NULL) OR (NEW.blocks_last IS NULL AND OLD.blocks_last IS NOT NULL)
        OR (OLD.blocks_loss IS NOT NULL AND (NEW.blocks_loss < OLD.blocks_loss OR NEW.blocks_delta < OLD.blocks_delta
            OR NEW.blocks_pure < OLD.blocks_pure OR (OLD.blocks_pure IS NULL AND NEW.blocks_pure IS NOT NULL)
            OR NEW.persons_loss < OLD.persons_loss OR NEW.persons_delta < OLD.persons_delta
            OR NEW.persons_pure < OLD.persons_pure OR (OLD.persons_pure IS NULL AND NEW.persons_pure IS NOT NULL))) THEN
        RAISE EXCEPTION 'what was counted only grows' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER blocks_only_grow BEFORE UPDATE OF blocks_first, blocks_last, blocks_loss, blocks_delta, blocks_pure, persons_loss, persons_delta,
    persons_pure ON lapwing.data_set FOR EACH ROW EXECUTE FUNCTION lapwing.require_block_growth();
CREATE TRIGGER blocks_stay BEFORE UPDATE OF blocks_every, person_budget ON lapwing.data_set FOR EACH ROW
    WHEN (OLD.blocks_every IS NOT NULL AND NEW.blocks_every IS DISTINCT FROM OLD.blocks_every
        OR NEW.blocks_every IS NULL AND NEW.person_budget IS NOT NULL)
    EXECUTE FUNCTION lapwing.refuse_change();

CREATE TRIGGER block_tree_only_grows BEFORE UPDATE ON lapwing.block_tree FOR EACH ROW
    WHEN (NEW.ledger_id <> OLD.ledger_id OR NEW.tree <> OLD.tree OR NEW.loss_most < OLD.loss_most OR NEW.delta_most < OLD.delta_most
        OR NEW.pure_most < OLD.pure_most OR (OLD.pure_most IS NULL AND NEW.pure_most IS NOT NULL))
    EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER block_node_stays BEFORE UPDATE OF ledger_id, tree, tree_level, place ON lapwing.block_node FOR EACH ROW
    EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER block_tree_kept BEFORE DELETE ON lapwing.block_tree FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER block_tree_not_emptied BEFORE TRUNCATE ON lapwing.block_tree FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER block_node_kept BEFORE DELETE ON lapwing.block_node FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER block_node_not_emptied BEFORE TRUNCATE ON lapwing.block_node FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();

-- An owner may propose another cap on what one person may lose.
DO $$
DECLARE rule record;
BEGIN
    FOR rule IN SELECT conname FROM pg_catalog.pg_constraint WHERE conrelid = 'lapwing.proposal'::pg_catalog.regclass
        AND pg_catalog.pg_get_constraintdef(oid) LIKE '%''ceiling''%' LOOP
        EXECUTE pg_catalog.format('ALTER TABLE lapwing.proposal DROP CONSTRAINT %I', rule.conname);
    END LOOP;
END $$;
ALTER TABLE lapwing.proposal ADD CHECK (kind IN ('budget', 'ceiling', 'analyst', 'anchor', 'cap'));
