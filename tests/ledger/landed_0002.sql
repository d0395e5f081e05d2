SET check_function_bodies = off;
CREATE SCHEMA lapwing;
ALTER SCHEMA lapwing OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.amount AS numeric(40,0)
	CONSTRAINT amount_check CHECK (((VALUE >= (0)::numeric) AND (VALUE < '10000000000000000000000000000000000000000'::numeric)));
ALTER DOMAIN lapwing.amount OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.block AS text
	CONSTRAINT block_check CHECK ((VALUE = ''::text));
ALTER DOMAIN lapwing.block OWNER TO lapwing_owner;
CREATE TYPE lapwing.charge_state AS ENUM (
    'reserved',
    'committed',
    'forfeited'
);
ALTER TYPE lapwing.charge_state OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.positive_amount AS numeric(40,0)
	CONSTRAINT positive_amount_check CHECK (((VALUE > (0)::numeric) AND (VALUE < '10000000000000000000000000000000000000000'::numeric)));
ALTER DOMAIN lapwing.positive_amount OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.positive_integer AS integer
	CONSTRAINT positive_integer_check CHECK ((VALUE >= 1));
ALTER DOMAIN lapwing.positive_integer OWNER TO lapwing_owner;
CREATE DOMAIN lapwing.version AS bigint
	CONSTRAINT version_check CHECK ((VALUE >= 0));
ALTER DOMAIN lapwing.version OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed in this way', TG_TABLE_NAME USING ERRCODE = 'LW009';
END $$;
ALTER FUNCTION lapwing.refuse_change() OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.require_growth() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF NEW.loss_spent < OLD.loss_spent OR NEW.delta_spent < OLD.delta_spent OR NEW.entries < OLD.entries OR NEW.charges < OLD.charges THEN
        RAISE EXCEPTION 'what was counted only grows' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;
ALTER FUNCTION lapwing.require_growth() OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.require_reserved() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF NEW.state <> 'reserved' THEN
        RAISE EXCEPTION 'a charge starts reserved' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;
ALTER FUNCTION lapwing.require_reserved() OWNER TO lapwing_owner;
CREATE FUNCTION lapwing.require_totals() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF (NEW.budget::jsonb ->> 'loss_total')::numeric <> NEW.loss_total OR (NEW.budget::jsonb ->> 'delta_total')::numeric <> NEW.delta_total
        OR (NEW.ceiling::jsonb ->> 'loss_total')::numeric <> NEW.loss_ceiling
        OR (NEW.ceiling::jsonb ->> 'delta_total')::numeric <> NEW.delta_ceiling THEN
        RAISE EXCEPTION 'the totals are not those of the budget' USING ERRCODE = 'LW009';
    END IF;
    RETURN NEW;
END $$;
ALTER FUNCTION lapwing.require_totals() OWNER TO lapwing_owner;
CREATE TABLE lapwing.alembic_version (
    version_num character varying(32) NOT NULL
);
ALTER TABLE lapwing.alembic_version OWNER TO lapwing_owner;
CREATE TABLE lapwing.analyst (
    ledger_id text NOT NULL,
    analyst text NOT NULL,
    group_name text,
    suspended boolean DEFAULT false NOT NULL,
    loss_total lapwing.amount,
    delta_total lapwing.amount,
    loss_spent lapwing.amount DEFAULT 0 NOT NULL,
    delta_spent lapwing.amount DEFAULT 0 NOT NULL,
    day_loss_max lapwing.amount,
    day date,
    day_loss numeric DEFAULT 0 NOT NULL,
    CONSTRAINT analyst_check CHECK (((loss_spent)::numeric <= (loss_total)::numeric)),
    CONSTRAINT analyst_check1 CHECK (((delta_spent)::numeric <= (delta_total)::numeric))
)
WITH (fillfactor='70');
ALTER TABLE lapwing.analyst OWNER TO lapwing_owner;
CREATE TABLE lapwing.analyst_group (
    ledger_id text NOT NULL,
    group_name text NOT NULL,
    loss_total lapwing.amount,
    delta_total lapwing.amount,
    loss_spent lapwing.amount DEFAULT 0 NOT NULL,
    delta_spent lapwing.amount DEFAULT 0 NOT NULL,
    CONSTRAINT analyst_group_check CHECK (((loss_spent)::numeric <= (loss_total)::numeric)),
    CONSTRAINT analyst_group_check1 CHECK (((delta_spent)::numeric <= (delta_total)::numeric))
)
WITH (fillfactor='70');
ALTER TABLE lapwing.analyst_group OWNER TO lapwing_owner;
CREATE TABLE lapwing.charge (
    ledger_id text NOT NULL,
    charge_id bigint NOT NULL,
    analyst text NOT NULL,
    group_name text,
    request_id text NOT NULL,
    digest text NOT NULL,
    version lapwing.version NOT NULL,
    block lapwing.block DEFAULT ''::text NOT NULL,
    summary text NOT NULL,
    loss lapwing.positive_amount NOT NULL,
    delta lapwing.amount NOT NULL,
    epoch text NOT NULL,
    nonce text NOT NULL,
    state lapwing.charge_state DEFAULT 'reserved'::lapwing.charge_state NOT NULL,
    payload bytea,
    payload_digest text,
    CONSTRAINT charge_check CHECK ((((state = 'committed'::lapwing.charge_state) = (payload IS NOT NULL)) AND ((state = 'committed'::lapwing.charge_state) = (payload_digest IS NOT NULL))))
)
WITH (fillfactor='80');
ALTER TABLE lapwing.charge OWNER TO lapwing_owner;
CREATE TABLE lapwing.data_set (
    ledger_id text NOT NULL,
    source_id text NOT NULL,
    superseded boolean DEFAULT false NOT NULL,
    budget text NOT NULL,
    ceiling text NOT NULL,
    loss_spent lapwing.amount DEFAULT 0 NOT NULL,
    delta_spent lapwing.amount DEFAULT 0 NOT NULL,
    loss_total lapwing.amount NOT NULL,
    delta_total lapwing.amount NOT NULL,
    loss_ceiling lapwing.amount NOT NULL,
    delta_ceiling lapwing.amount NOT NULL,
    closed boolean DEFAULT false NOT NULL,
    entries bigint DEFAULT 0 NOT NULL,
    charges bigint DEFAULT 0 NOT NULL,
    head text NOT NULL,
    statement_loss_max lapwing.amount,
    day_loss_max lapwing.amount,
    day date,
    day_loss numeric DEFAULT 0 NOT NULL,
    answers_shared boolean DEFAULT true NOT NULL,
    lost_workers_max lapwing.positive_integer DEFAULT 10 NOT NULL,
    lost_workers_seconds lapwing.positive_integer DEFAULT 315360000 NOT NULL,
    anchors text[] DEFAULT '{}'::text[] NOT NULL,
    anchored bigint DEFAULT 0 NOT NULL,
    CONSTRAINT data_set_check CHECK ((((loss_spent)::numeric <= (loss_total)::numeric) AND ((loss_total)::numeric <= (loss_ceiling)::numeric))),
    CONSTRAINT data_set_check1 CHECK ((((delta_spent)::numeric <= (delta_total)::numeric) AND ((delta_total)::numeric <= (delta_ceiling)::numeric)))
)
WITH (fillfactor='50');
ALTER TABLE lapwing.data_set OWNER TO lapwing_owner;
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
    chained text NOT NULL
);
ALTER TABLE lapwing.entry OWNER TO lapwing_owner;
CREATE TABLE lapwing.fingerprint (
    fingerprint text NOT NULL,
    source_id text NOT NULL
);
ALTER TABLE lapwing.fingerprint OWNER TO lapwing_owner;
CREATE TABLE lapwing.proposal (
    ledger_id text NOT NULL,
    proposal_id bigint NOT NULL,
    kind text NOT NULL,
    target text NOT NULL,
    proposed_by text NOT NULL,
    budget text NOT NULL,
    loss_total lapwing.amount NOT NULL,
    delta_total lapwing.amount NOT NULL,
    reason text NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    decided_by text,
    proposed_role text DEFAULT ''::text NOT NULL,
    CONSTRAINT proposal_check CHECK (((kind = ANY (ARRAY['analyst'::text, 'anchor'::text])) = (target <> ''::text))),
    CONSTRAINT proposal_check1 CHECK (((state = 'open'::text) = (decided_by IS NULL))),
    CONSTRAINT proposal_check2 CHECK ((decided_by <> proposed_by)),
    CONSTRAINT proposal_kind_check CHECK ((kind = ANY (ARRAY['budget'::text, 'ceiling'::text, 'analyst'::text, 'anchor'::text]))),
    CONSTRAINT proposal_state_check CHECK ((state = ANY (ARRAY['open'::text, 'approved'::text, 'denied'::text])))
);
ALTER TABLE lapwing.proposal OWNER TO lapwing_owner;
CREATE TABLE lapwing.worker (
    epoch text NOT NULL,
    ledger_id text NOT NULL,
    host text NOT NULL,
    boot text NOT NULL,
    namespace text NOT NULL,
    pid bigint NOT NULL,
    started text NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    ended_how text,
    forfeited integer DEFAULT 0 NOT NULL,
    anchors text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT worker_check CHECK (((ended_at IS NULL) = (ended_how IS NULL))),
    CONSTRAINT worker_ended_how_check CHECK ((ended_how = ANY (ARRAY['disconnected'::text, 'lost'::text])))
);
ALTER TABLE lapwing.worker OWNER TO lapwing_owner;
INSERT INTO lapwing.alembic_version VALUES ('0002');
INSERT INTO lapwing.analyst VALUES ('33ba004c81c8aa60723b578d6eb02887', 'ana', NULL, false, NULL, NULL, 305, 7, NULL, '2026-11-16', 305);
INSERT INTO lapwing.analyst VALUES ('33ba004c81c8aa60723b578d6eb02887', 'bo', 'red', false, 2600519873268, NULL, 46, 1, 3467359831024, '2026-11-16', 46);
INSERT INTO lapwing.analyst_group VALUES ('33ba004c81c8aa60723b578d6eb02887', 'red', 5201039746536, NULL, 46, 1);
INSERT INTO lapwing.charge VALUES ('33ba004c81c8aa60723b578d6eb02887', 1, 'ana', NULL, 'paid', 'plan of paid', 1, '', 'SELECT ''paid''', 300, 7, 'd5d4b1828708ff912ec3c9d3d5c4e04f', '3d90930055c77524ae7dd516d2fcba2f9867339da88d8f384330b68b637483db', 'committed', '\x616e73776572', '0db52f4076c082518412afd3dd3576e2cb0c63703fd7fed5e23ade60efef31d9');
INSERT INTO lapwing.charge VALUES ('33ba004c81c8aa60723b578d6eb02887', 2, 'bo', 'red', 'lost', 'plan of lost', 1, '', 'SELECT ''lost''', 40, 0, 'd5d4b1828708ff912ec3c9d3d5c4e04f', 'b9b3a1ded881a1e9e6f6f41b7d35fda5118018f43c1293d20205bd8e553bfc36', 'forfeited', NULL, NULL);
INSERT INTO lapwing.charge VALUES ('33ba004c81c8aa60723b578d6eb02887', 3, 'ana', NULL, 'open', 'plan of open', 1, '', 'SELECT ''open''', 5, 0, 'd5d4b1828708ff912ec3c9d3d5c4e04f', '451b738d3ab27c2f92bd1414d76981ad76ff1a39667cb4c83ade2632abc59079', 'reserved', NULL, NULL);
INSERT INTO lapwing.charge VALUES ('33ba004c81c8aa60723b578d6eb02887', 4, 'bo', 'red', 'open too', 'plan of open too', 1, '', 'SELECT ''open too''', 6, 1, 'd5d4b1828708ff912ec3c9d3d5c4e04f', 'c3be27b0569bb8c2e000bec0eca76d71fd834cf0c1a67cc754f780bbbf8d7228', 'reserved', NULL, NULL);
INSERT INTO lapwing.data_set VALUES ('33ba004c81c8aa60723b578d6eb02887', 'clinic', false, '{"account":"approximate","delta":"1/1099511627776","delta_conversion":"1/2199023255552","delta_keys":"1/2199023255552","delta_total":"454747350886464118","epsilon":"2","loss_total":"39724108762098"}', '{"account":"approximate","delta":"1/1099511627776","delta_conversion":"1/2199023255552","delta_keys":"1/2199023255552","delta_total":"454747350886464118","epsilon":"2","loss_total":"39724108762098"}', 351, 8, 39724108762098, 454747350886464118, 39724108762098, 454747350886464118, false, 17, 4, 'b41d507215ebb71d6a44666f276c5f1f7a374bdd0040b234032171dc5a572e83', 5201039746536, NULL, '2026-11-16', 351, true, 10, 315360000, '{a543058f0c91b2d9}', 14);
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 1, '2026-11-16T02:01:51.874+00:00', 'register', '', NULL, 0, 0, 'registered clinic by owner', '9de86303898e73c2ebdb65738faa117f6d3fb93ea35c3f67e3b203e6ba8e5cdf', '2b9004c80919348dfcad6b1e725250cd9a438d9d33fa29a80c08f313bdb8b91f');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 2, '2026-11-16T02:01:51.883+00:00', 'policy', '', NULL, 0, 0, 'limits', 'limits b2010d45e217060c8164a24752215a2bd078b0d82856709bd53a1abd26ea3c29', 'f842c73c39128b84cdd7e06113f4f23fdbd76251716ba11e4449cf3b6d1fb870');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 3, '2026-11-16T02:01:51.883+00:00', 'policy', '', NULL, 0, 0, 'anchors a543058f0c91b2d9', 'anchors ef44ae6b58f2ef4c4633be64b2414371e4cdba8aabc15b4673af730c3f789e2b', '1b9c383de526536f6bcb291d1209b2e91f4d775438edc77e7ab40b9960cc5a81');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 4, '2026-11-16T02:01:51.980+00:00', 'policy', 'ana', NULL, 0, 0, 'admit, by owner', 'analyst ana 1e2410efa485fe702b76504844ae7494b6397ce659f1a30faf990aed1c749d5f', 'cdb84dd22c7b1bf563c66340cc0a5bca48c420c6b80549a3da6bfff48d1a71d1');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 5, '2026-11-16T02:01:51.999+00:00', 'policy', 'bo', NULL, 0, 0, 'admit, by owner', 'analyst bo 1e2410efa485fe702b76504844ae7494b6397ce659f1a30faf990aed1c749d5f', 'eda0876f0aa082521f4dcae70dc8f9ff7567e07ba9204e2eb3af48f7decfb5f8');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 6, '2026-11-16T02:01:52.003+00:00', 'policy', '', NULL, 0, 0, 'group red, by owner', 'group red e11abb25e077528255a30bd629115eeadbca236a86d1182c3e216c8d3b50f057', '7789e58f2feea00459a3c3849be3721b0dc3dc09c3bc8239778bba76d3d67447');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 7, '2026-11-16T02:01:52.015+00:00', 'policy', 'bo', NULL, 0, 0, 'admit, by owner', 'analyst bo d8f96be98782e0b15927d1ed15a4fe2d02ecc2d0f276cd1d6c6b8cfdc0134046', '2d36b529e9ddf2aa0dadf34817690d33bb246d11819dd158871d43a74f2be0b9');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 8, '2026-11-16T02:01:52.022+00:00', 'policy', '', NULL, 0, 0, 'limits, by owner', 'limits 7b1dde3fe1ee65154ddcc7b66c8bc896b662d04a61f652c7e81ad3a519939228', '809cb33e1174359a46c9317b9d9b550feff7ccb96d0cfd37f8a1a7a99bfe61a4');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 9, '2026-11-16T02:01:52.053+00:00', 'propose', '', NULL, 0, 0, 'proposal 1 by one: asked', '6f4102451f3b6dd894f5e70172e60771edada4e3cc6741b13c77b1254f71d311', '9aaf3a1d355fb60f76179773964f2a9e29801e51d1f73e2f86456bbc621cc933');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 10, '2026-11-16T02:01:52.103+00:00', 'budget', '', NULL, 0, 0, 'proposal 1 by one, approved by another: ', '02db553df8dbae841cb98269828d1ff36968dab3d4f445cf9e4b8d5a467a6505', '26a3c05f2eeb69ec1b2f429dc0ef4101b3adc831bd5effa8ffec2944a298aab3');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 11, '2026-11-16T02:01:52.159+00:00', 'propose', '', NULL, 0, 0, 'proposal 2 by one: waits', '13c334d7122932e7b8ac9acd91540745fcf025b031faacbd37e9d7f7b991b0ab', 'aac492a024ccd4cb49d4fd8e811547f7965dffca3b8e44a2d80a63598894c9db');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 12, '2026-11-16T02:01:52.177+00:00', 'reserve', 'ana', 1, 300, 7, 'SELECT ''paid''', 'a982c7e1faf26640b87d949b4d23b72492dad890cd7ca9c4ebb79dd510105b2a', '496de9396cd85ec549134335255b15a41187054c986526508893c01bf1458d10');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 13, '2026-11-16T02:01:52.199+00:00', 'commit', 'ana', 1, 0, 0, '', '0db52f4076c082518412afd3dd3576e2cb0c63703fd7fed5e23ade60efef31d9', 'f7616f25f8b206ee2c3218c278580597bcc50a4b78f993393dbf5b12438288e0');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 14, '2026-11-16T02:01:52.221+00:00', 'reserve', 'bo', 2, 40, 0, 'SELECT ''lost''', '303cc92ae48344b3636622db3b89c93ec45294be9ae3649066cc903834d0563c', '3fd2a6f8fe0ee944ec46275a3cb32ff51569d5bf679d19a62c75e43b0e341063');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 15, '2026-11-16T02:01:52.236+00:00', 'forfeit', 'bo', 2, 0, 0, 'no answer', '', '1dda39f8b6b0cbe8343d2e77c1d6a0fe27514dc16db70ece8d1cbeab1422fb83');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 16, '2026-11-16T02:01:52.239+00:00', 'reserve', 'ana', 3, 5, 0, 'SELECT ''open''', 'f93e6403e8355cad6053eee1b360d7ab0c5ebd4e8e10bc1471b874d16103314d', 'de1c430daf537bcf60172fd9fce8700d2ce6b0344ffee81f3b84e2944072b55e');
INSERT INTO lapwing.entry VALUES ('33ba004c81c8aa60723b578d6eb02887', 17, '2026-11-16T02:01:52.239+00:00', 'reserve', 'bo', 4, 6, 1, 'SELECT ''open too''', '2025084462eaf4e72a7b7dccec701c9b01e3bdff5fac11e050756183799b7216', 'b41d507215ebb71d6a44666f276c5f1f7a374bdd0040b234032171dc5a572e83');
INSERT INTO lapwing.fingerprint VALUES ('files of clinic', 'clinic');
INSERT INTO lapwing.proposal VALUES ('33ba004c81c8aa60723b578d6eb02887', 1, 'budget', '', 'one', '{"account":"approximate","delta":"1/1099511627776","delta_conversion":"1/2199023255552","delta_keys":"1/2199023255552","delta_total":"454747350886464118","epsilon":"2","loss_total":"39724108762098"}', 39724108762098, 454747350886464118, 'asked', 'approved', 'another', 'lapwing_app');
INSERT INTO lapwing.proposal VALUES ('33ba004c81c8aa60723b578d6eb02887', 2, 'ceiling', '', 'one', '{"account":"approximate","delta":"1/1099511627776","delta_conversion":"1/2199023255552","delta_keys":"1/2199023255552","delta_total":"454747350886464118","epsilon":"3","loss_total":"86424806806930"}', 86424806806930, 454747350886464118, 'waits', 'open', NULL, 'lapwing_app');
INSERT INTO lapwing.worker VALUES ('d5d4b1828708ff912ec3c9d3d5c4e04f', '33ba004c81c8aa60723b578d6eb02887', '3d1219c7c4c5404aaa1f6d2a48adfda4/vm', '4b914a35-78ba-44df-bb12-b667999e6cac', 'pid:[4026531836]', 23731, '3936524', '2026-11-16 02:16:51.968206+00', NULL, NULL, 0, '{a543058f0c91b2d9}');
ALTER TABLE ONLY lapwing.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY lapwing.analyst_group
    ADD CONSTRAINT analyst_group_pkey PRIMARY KEY (ledger_id, group_name);
ALTER TABLE ONLY lapwing.analyst
    ADD CONSTRAINT analyst_pkey PRIMARY KEY (ledger_id, analyst);
ALTER TABLE ONLY lapwing.charge
    ADD CONSTRAINT charge_ledger_id_analyst_request_id_key UNIQUE (ledger_id, analyst, request_id);
ALTER TABLE ONLY lapwing.charge
    ADD CONSTRAINT charge_pkey PRIMARY KEY (ledger_id, charge_id);
ALTER TABLE ONLY lapwing.data_set
    ADD CONSTRAINT data_set_pkey PRIMARY KEY (ledger_id);
ALTER TABLE ONLY lapwing.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (ledger_id, entry_id);
ALTER TABLE ONLY lapwing.fingerprint
    ADD CONSTRAINT fingerprint_pkey PRIMARY KEY (fingerprint, source_id);
ALTER TABLE ONLY lapwing.proposal
    ADD CONSTRAINT proposal_pkey PRIMARY KEY (ledger_id, proposal_id);
ALTER TABLE ONLY lapwing.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (epoch);
CREATE INDEX charge_by_digest ON lapwing.charge USING btree (ledger_id, digest, charge_id) WHERE (state = 'committed'::lapwing.charge_state);
CREATE INDEX charge_open ON lapwing.charge USING btree (ledger_id, epoch) WHERE (state = 'reserved'::lapwing.charge_state);
CREATE UNIQUE INDEX data_set_of_source ON lapwing.data_set USING btree (source_id) WHERE (NOT superseded);
CREATE UNIQUE INDEX entry_commits ON lapwing.entry USING btree (ledger_id, charge_id) WHERE (kind = 'commit'::text);
CREATE INDEX worker_active ON lapwing.worker USING btree (ledger_id) WHERE (ended_at IS NULL);
CREATE INDEX worker_lost ON lapwing.worker USING btree (ledger_id, ended_at) WHERE ((ended_how = 'lost'::text) AND (forfeited > 0));
CREATE TRIGGER charge_kept BEFORE DELETE ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER charge_moves_once BEFORE UPDATE OF state, payload, payload_digest ON lapwing.charge FOR EACH ROW WHEN (((old.state <> 'reserved'::lapwing.charge_state) OR (new.state = 'reserved'::lapwing.charge_state))) EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER charge_not_emptied BEFORE TRUNCATE ON lapwing.charge FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER charge_starts_reserved BEFORE INSERT ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.require_reserved();
CREATE TRIGGER charge_stays BEFORE UPDATE OF ledger_id, charge_id, analyst, group_name, request_id, digest, version, block, summary, loss, delta, epoch, nonce ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER data_set_changed BEFORE UPDATE OF budget, ceiling, loss_total, delta_total, loss_ceiling, delta_ceiling ON lapwing.data_set FOR EACH ROW WHEN (((new.budget <> old.budget) OR (new.ceiling <> old.ceiling) OR ((new.loss_total)::numeric <> (old.loss_total)::numeric) OR ((new.delta_total)::numeric <> (old.delta_total)::numeric) OR ((new.loss_ceiling)::numeric <> (old.loss_ceiling)::numeric) OR ((new.delta_ceiling)::numeric <> (old.delta_ceiling)::numeric))) EXECUTE FUNCTION lapwing.require_totals();
CREATE TRIGGER data_set_kept BEFORE DELETE ON lapwing.data_set FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER data_set_made BEFORE INSERT ON lapwing.data_set FOR EACH ROW EXECUTE FUNCTION lapwing.require_totals();
CREATE TRIGGER data_set_not_emptied BEFORE TRUNCATE ON lapwing.data_set FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER data_set_only_grows BEFORE UPDATE OF loss_spent, delta_spent, entries, charges ON lapwing.data_set FOR EACH ROW EXECUTE FUNCTION lapwing.require_growth();
CREATE TRIGGER data_set_stays BEFORE UPDATE OF ledger_id, source_id, loss_ceiling, delta_ceiling, superseded ON lapwing.data_set FOR EACH ROW WHEN (((new.ledger_id <> old.ledger_id) OR (new.source_id <> old.source_id) OR ((new.loss_ceiling)::numeric < (old.loss_ceiling)::numeric) OR ((new.delta_ceiling)::numeric < (old.delta_ceiling)::numeric) OR (old.superseded AND (NOT new.superseded)))) EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER entry_fixed BEFORE DELETE OR UPDATE ON lapwing.entry FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER entry_kept BEFORE TRUNCATE ON lapwing.entry FOR EACH STATEMENT EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER fingerprint_kept BEFORE DELETE OR UPDATE ON lapwing.fingerprint FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER proposal_decided_once BEFORE UPDATE ON lapwing.proposal FOR EACH ROW WHEN (((old.state <> 'open'::text) OR (new.state = 'open'::text) OR (new.proposed_by <> old.proposed_by) OR (new.proposed_role <> old.proposed_role) OR (new.budget <> old.budget) OR ((new.loss_total)::numeric <> (old.loss_total)::numeric) OR ((new.delta_total)::numeric <> (old.delta_total)::numeric) OR (new.kind <> old.kind) OR (new.target <> old.target))) EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER proposal_kept BEFORE DELETE ON lapwing.proposal FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER worker_ends_once BEFORE UPDATE ON lapwing.worker FOR EACH ROW WHEN (((old.ended_at IS NOT NULL) OR (new.epoch <> old.epoch) OR (new.ledger_id <> old.ledger_id))) EXECUTE FUNCTION lapwing.refuse_change();
CREATE TRIGGER worker_kept BEFORE DELETE ON lapwing.worker FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change();
ALTER TABLE ONLY lapwing.analyst_group
    ADD CONSTRAINT analyst_group_ledger_id_fkey FOREIGN KEY (ledger_id) REFERENCES lapwing.data_set(ledger_id);
ALTER TABLE ONLY lapwing.analyst
    ADD CONSTRAINT analyst_ledger_id_fkey FOREIGN KEY (ledger_id) REFERENCES lapwing.data_set(ledger_id);
ALTER TABLE ONLY lapwing.analyst
    ADD CONSTRAINT analyst_ledger_id_group_name_fkey FOREIGN KEY (ledger_id, group_name) REFERENCES lapwing.analyst_group(ledger_id, group_name);
ALTER TABLE ONLY lapwing.proposal
    ADD CONSTRAINT proposal_ledger_id_fkey FOREIGN KEY (ledger_id) REFERENCES lapwing.data_set(ledger_id);
ALTER TABLE ONLY lapwing.worker
    ADD CONSTRAINT worker_ledger_id_fkey FOREIGN KEY (ledger_id) REFERENCES lapwing.data_set(ledger_id);
