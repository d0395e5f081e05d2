-- What a charge bought, as a record in JSON (lapwing.ledger.purchases). Charges that are there have none, and stay as they are hashed.

ALTER TABLE lapwing.charge ADD COLUMN purchase text;

DROP TRIGGER charge_stays ON lapwing.charge;
CREATE TRIGGER charge_stays BEFORE UPDATE OF ledger_id, charge_id, analyst, group_name, request_id, digest, version, block, summary, loss, delta, pure,
    purchase, epoch, nonce ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
