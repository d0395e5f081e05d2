-- What was bought for blocks is found by its name, with which its record begins (lapwing.ledger.purchases). A row of an index may have 2,700
-- bytes, a record may be longer, and a name is within its first 200 characters.

CREATE INDEX charge_by_name ON lapwing.charge (ledger_id, version, (left(purchase, 200) COLLATE "C"))
    WHERE state = 'committed' AND left(purchase, 15) = '{"kind":"block"';
