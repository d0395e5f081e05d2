-- Workers of the first version write to no registered anchor, and the nonces of what they have reserved could be read; those of the second call
-- functions that are no longer there. They end here.
DO $$
DECLARE
    w record;
    ds lapwing.data_set;
BEGIN
    FOR w IN SELECT ledger_id, epoch FROM lapwing.worker WHERE ended_at IS NULL ORDER BY ledger_id, epoch LOOP
        ds := lapwing.end_worker(lapwing.locked(w.ledger_id), w.epoch, 'disconnected', 'the ledger was brought to a newer version');
    END LOOP;
END $$;
