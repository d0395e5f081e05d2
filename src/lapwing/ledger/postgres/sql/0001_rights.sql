-- The functions act with the rights of the owner of the schema; who calls them needs no right to any table but to read. So not even a
-- mistake in the caller can change a row in another way than the functions do.
DO $$
DECLARE f record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS signature, p.proname FROM pg_proc p
        WHERE p.pronamespace = 'lapwing'::regnamespace LOOP
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', f.signature);
        IF f.proname = ANY (ARRAY['register_worker', 'renew_worker', 'disconnect_worker', 'reserve', 'reserve_many', 'commit', 'forfeit', 'find_answer',
            'create_data_set', 'set_closed', 'record', 'set_budget', 'set_limits', 'set_group', 'set_analyst', 'propose', 'decide',
            'accept_override']) THEN
            EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = lapwing, pg_temp SET lock_timeout = ''30s''', f.signature);
        END IF;
    END LOOP;
END $$;

-- Procedures that commit cannot act with another's rights. They change nothing themselves; what they call besides does not change anything.
COMMENT ON FUNCTION lapwing.require_durable() IS 'callable';
-- Called by the procedures and by the functions alike: with one search path for both its plan is kept, else it is made anew with each call.
ALTER FUNCTION lapwing.require_durable() SET search_path = lapwing, pg_temp;
