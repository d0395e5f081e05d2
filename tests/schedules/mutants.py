"""Deliberate mistakes in the protocol, in the database, in Python and in the use of both, and what sees each of them.

``patches`` are the mistake. Where a second rule of the ledger would stop it, the mistake alone is no danger and shows nothing about the
tests; ``second`` takes that rule away too, and says so. ``by`` names the check of :mod:`tests.schedules.checks` that must see the mistake,
and ``seen`` a part of what it says.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.schedules.subject import PYTHON, SQL, Patch


@dataclass(frozen=True)
class Mutant:
    name: str
    by: str
    seen: str
    patches: tuple[Patch, ...] = ()
    second: tuple[Patch, ...] = ()
    use: str = ""
    """A mistake in the use of the ledger: an attribute of :class:`tests.schedules.world.World`."""


def sql(text: str, replacement: str, times: int = 1) -> Patch:
    return Patch(SQL, text, replacement, times)


def python(text: str, replacement: str, times: int = 1) -> Patch:
    return Patch(PYTHON, text, replacement, times)


# Second rules, in the tables and in the anchor.
NO_CHECK = (
    sql("(loss_spent <= loss_total OR (pure_spent <= pure_total) IS TRUE) AND loss_total <= loss_ceiling\n", "true\n"),
    sql("delta_spent <= delta_total AND delta_total <= delta_ceiling", "true"),
)
NO_UNIQUE = sql("    UNIQUE (ledger_id, analyst, request_id),\n", "")
SPENT_MAY_FALL = sql("IF NEW.loss_spent < OLD.loss_spent OR NEW.delta_spent < OLD.delta_spent OR NEW.entries", "IF NEW.entries", 2)
CHARGES_MAY_MOVE_AGAIN = sql("WHEN (OLD.state <> 'reserved' OR NEW.state = 'reserved')", "WHEN (false)")
NO_CHARGE_KEY = sql("    PRIMARY KEY (ledger_id, charge_id),\n", "")
NO_ENTRY_KEY = sql("    chained text NOT NULL,\n    PRIMARY KEY (ledger_id, entry_id)\n", "    chained text NOT NULL\n")
ONE_MAY_DECIDE = sql("    CHECK (decided_by <> proposed_by)", "    CHECK (true)")
ENTRIES_MAY_GO = sql("CREATE TRIGGER entry_fixed BEFORE UPDATE OR DELETE", "CREATE TRIGGER entry_fixed BEFORE UPDATE")
ANCHOR_TAKES_ANYTHING = python("                require_follows(kept.point, point, holds)\n", "")
WORKER_TAKES_ANYTHING = sql("            outcome := 'rolled-back'; RETURN;", "            NULL;")

NO_ROW_LOCK = sql("WHERE ledger_id = p_ledger_id FOR NO KEY UPDATE;", "WHERE ledger_id = p_ledger_id;")
CAP_OF_LOSS = "lapwing.exceeds(ds.loss_spent + p_loss, ds.pure_spent + p_pure, ds.loss_total, ds.pure_total)"
CAP = f"ELSIF {CAP_OF_LOSS}\n        OR ds.delta_spent + p_delta > ds.delta_total THEN"
KEY = "ON c.ledger_id = p_ledger_id AND c.analyst = p_analyst AND c.request_id = p_request_id;"
SPEND = (
    "UPDATE lapwing.data_set SET loss_spent = loss_spent + p_loss, delta_spent = delta_spent + p_delta, pure_spent = pure_spent + p_pure"
)
FORFEITED = "        outcome := 'done';\n    ELSE\n        outcome := 'not-open';"
DEAD = "AND (lease_until < clock_timestamp() OR epoch = ANY (p_dead))"


def cap(text: str) -> Patch:
    """Another comparison in the place of that with the cap."""
    return sql(CAP, f"ELSIF {text} THEN")


def key(also: str) -> Patch:
    """The look for a key with another condition."""
    return sql(KEY, f"{KEY.removesuffix(';')} AND {also};")


DATABASE_DECIDES = [
    Mutant("no row lock", "gates reserve reserve", "as in no order", (NO_ROW_LOCK,)),
    Mutant(
        "no row lock, sums from a stale read",
        "gates reserve reserve",
        "overspent",
        (NO_ROW_LOCK, sql(SPEND, SPEND.replace("= loss_spent +", "= ds.loss_spent +").replace("= delta_spent +", "= ds.delta_spent +"))),
        (NO_ENTRY_KEY, NO_CHARGE_KEY),
    ),
    Mutant(
        "no row lock, one key",
        "gates reserve_shared_key reserve_shared_key",
        "one key, 2 charges",
        (NO_ROW_LOCK,),
        (NO_UNIQUE, *NO_CHECK, NO_ENTRY_KEY, NO_CHARGE_KEY),
    ),
    Mutant("cap not compared", "schedule last unit", "overspent", (cap("ds.delta_spent + p_delta > ds.delta_total"),), NO_CHECK),
    Mutant(
        "cap compared before the charge",
        "schedule last unit",
        "overspent",
        (cap("lapwing.exceeds(ds.loss_spent, ds.pure_spent, ds.loss_total, ds.pure_total) OR ds.delta_spent > ds.delta_total"),),
        NO_CHECK,
    ),
    Mutant(
        "cap off by one unit",
        "schedule last unit",
        "overspent",
        (cap("ds.loss_spent + p_loss > ds.loss_total + 1 AND ds.pure_total IS NULL OR ds.delta_spent + p_delta > ds.delta_total"),),
        NO_CHECK,
    ),
    Mutant(
        "last unit refused",
        "model",
        "budget-exceeded",
        (cap(f"{CAP_OF_LOSS.replace('+ p_loss', '+ p_loss + 1')} OR ds.delta_spent + p_delta > ds.delta_total"),),
    ),
    Mutant("delta not compared", "schedule last delta", "overspent", (cap(CAP_OF_LOSS),), NO_CHECK),
    Mutant(
        "delta not charged", "schedule last delta", "do not add up", (sql(SPEND, SPEND.replace("delta_spent + p_delta", "delta_spent")),)
    ),
    Mutant(
        "sub-budget in the place of the cap",
        "model",
        "budget-exceeded",
        (cap(f"seen.loss_total IS NULL AND ({CAP_OF_LOSS} OR ds.delta_spent + p_delta > ds.delta_total)"),),
        NO_CHECK,
    ),
]

BATCHES = [
    Mutant(
        "several not compared with the cap",
        "model",
        "of several",
        (sql("AND NOT lapwing.exceeds(loss_spent + loss_of_all, pure_spent + pure_of_all, loss_total, pure_total)\n", "\n"),),
        NO_CHECK,
    ),
    Mutant(
        "several, with keys that were used",
        "model",
        "of several",
        (sql("AND a.analyst IS NOT NULL AND c.charge_id IS NULL\n", "AND a.analyst IS NOT NULL\n"),),
        (NO_UNIQUE,),
    ),
    Mutant(
        "several while closed",
        "model",
        "of several",
        (sql("NOT d.superseded AND NOT d.closed AND w.epoch", "NOT d.superseded AND w.epoch"),),
    ),
    Mutant(
        "several data sets, and their rows not locked",
        "gates reserve_across reserve",
        "as in no order",
        (sql("            ORDER BY ledger_id FOR NO KEY UPDATE) AS l;", "            ORDER BY ledger_id) AS l;"),),
        (*NO_CHECK, NO_ENTRY_KEY, NO_CHARGE_KEY),
    ),
    Mutant(
        "several permits before their anchor",
        "schedule batch",
        "a permit before its anchor",
        (
            python(
                "        if texts is not None:\n            self._advance(rows.state_of_texts(texts), known=known)",
                "        if False:\n            self._advance(rows.state_of_texts(texts), known=known)",
            ),
        ),
    ),
]

FAULTS_AND_KEYS = [
    Mutant(
        "refund on fault",
        "schedule faults and retries",
        "do not add up",
        (
            sql(
                FORFEITED,
                f"        UPDATE lapwing.data_set SET loss_spent = loss_spent - c.loss WHERE ledger_id = p_ledger_id;\n{FORFEITED}",
            ),
        ),
        (SPENT_MAY_FALL,),
    ),
    Mutant(
        "refund of what a lost worker had reserved",
        "schedule dies after reserve",
        "do not add up",
        (
            sql("FOR c IN SELECT charge_id, analyst FROM", "FOR c IN SELECT charge_id, analyst, loss FROM"),
            sql(
                "        n := n + 1;\n",
                "        UPDATE lapwing.data_set SET loss_spent = loss_spent - c.loss WHERE ledger_id = ds.ledger_id;\n"
                "        n := n + 1;\n",
            ),
        ),
        (SPENT_MAY_FALL,),
    ),
    Mutant("key not looked up", "schedule same key", "one key, 2 charges", (key("false"),), (NO_UNIQUE,)),
    Mutant(
        "lost key run again",
        "schedule faults and retries",
        "one key, data read 2 times",
        (sql("        outcome := 'forfeited';\n    ELSIF", "        outcome := 'permit'; o_state := lapwing.state_texts(ds);\n    ELSIF"),),
    ),
    Mutant(
        "key run again while it runs",
        "schedule same key",
        "one key, 2 permits",
        (sql("outcome := 'in-progress';", "outcome := 'permit'; o_state := lapwing.state_texts(ds);"),),
    ),
    Mutant(
        "forfeited key charged again",
        "schedule faults and retries",
        "one key, 2 charges",
        (key("c.state <> 'forfeited'"),),
        (NO_UNIQUE,),
    ),
    Mutant(
        "nonce ignored",
        "schedule same key in one worker",
        "one key, 2 permits",
        (sql("ELSIF c.epoch = p_epoch AND c.nonce = p_nonce THEN", "ELSIF c.epoch = p_epoch THEN"),),
    ),
    Mutant(
        "request hash not compared",
        "schedule other request, same key",
        "sent without a committed charge",
        (sql("IF c.digest <> p_digest THEN", "IF false THEN"),),
    ),
    Mutant(
        "stored answer of another analyst",
        "model",
        "instead of",
        (sql(KEY, "ON c.ledger_id = p_ledger_id AND c.request_id = p_request_id;"),),
    ),
    Mutant(
        "another answer over the first",
        "model",
        "charge-not-open",
        (sql("IF c.state = 'committed' AND c.payload_digest = hashed THEN", "IF c.state = 'committed' THEN"),),
    ),
]

WORKERS = [
    Mutant(
        "epoch ignored in commit",
        "model",
        "charge-not-open",
        (sql("o.charge_id = p_charge_id AND o.epoch = p_epoch AND o.nonce", "o.charge_id = p_charge_id AND o.nonce"),),
    ),
    Mutant(
        "forfeited charge committed later",
        "schedule zombie",
        "has other entries than its state says",
        (sql("IF c.worker IS NULL OR c.state <> 'reserved' OR ds.superseded THEN", "IF ds.superseded THEN"),),
        (CHARGES_MAY_MOVE_AGAIN,),
    ),
    Mutant("recovery skipped", "schedule two begin after one died", "is still reserved", (sql(DEAD, "AND false"),)),
    Mutant(
        "recovery when a worker goes, not when one comes",
        "model",
        "closed",
        (
            sql(DEAD, "AND false"),
            sql(
                "    ds := lapwing.end_worker(ds, p_epoch, 'disconnected'",
                "    SELECT (lapwing.end_worker(ds, w.epoch, 'lost', 'gone')).* INTO ds FROM lapwing.worker w\n"
                "        WHERE w.ledger_id = p_ledger_id AND ended_at IS NULL AND lease_until < clock_timestamp();\n"
                "    ds := lapwing.end_worker(lapwing.locked(p_ledger_id), p_epoch, 'disconnected'",
            ),
        ),
    ),
    Mutant(
        "worker ended, what it reserved left",
        "schedule two begin after one died",
        "is still reserved",
        (sql("AND state = 'reserved' ORDER BY charge_id LOOP", "AND false ORDER BY charge_id LOOP"),),
    ),
    Mutant(
        "worker declared dead and not ended",
        "model",
        "instead of",
        (sql("forfeited = n WHERE epoch = p_epoch AND ended_at IS NULL;", "forfeited = n WHERE false;"),),
    ),
    Mutant("whoever comes takes the others for dead", "model", "instead of", (sql(DEAD, ""),)),
]

POLICIES = [
    Mutant(
        "closed not checked",
        "schedule owner closes",
        "served while closed",
        (sql("    ELSIF ds.closed THEN\n", "    ELSIF false THEN\n"),),
    ),
    Mutant(
        "incident does not close",
        "schedule incident",
        "served while closed",
        (sql("IF p_incident AND NOT ds.closed THEN", "IF false THEN"),),
    ),
    Mutant("lost workers never close", "model", "open instead of closed", (sql("IF lost >= ds.lost_workers_max THEN", "IF false THEN"),)),
    Mutant(
        "clock put back gives the day again",
        "model",
        "day-limit",
        (
            sql("WHEN ds.day >= today THEN", "WHEN ds.day = today THEN", 2),
            sql("WHEN seen.day >= today THEN", "WHEN seen.day = today THEN", 2),
        ),
    ),
    Mutant(
        "limit of a statement not checked",
        "model",
        "statement-limit",
        (sql("IF lapwing.exceeds(p_loss, p_pure, ds.statement_loss_max, ds.statement_pure_max) THEN", "IF false THEN"),),
    ),
    Mutant(
        "group not charged",
        "model",
        "another share of a group",
        (
            sql(
                "UPDATE lapwing.analyst_group SET loss_spent = loss_spent + p_loss,",
                "UPDATE lapwing.analyst_group SET loss_spent = loss_spent,",
            ),
        ),
    ),
    Mutant("found by whoever asks", "model", "instead of None", (sql("(d.answers_shared OR c.analyst = p_analyst)", "true"),)),
    Mutant(
        "found while closed",
        "model",
        "instead of None",
        (sql("(p_analyst IS NULL OR (NOT d.closed AND", "(p_analyst IS NULL OR (true AND"),),
    ),
    Mutant(
        "budget raised by one person",
        "model",
        "done instead of second-person",
        (sql("budget_outcome(ds, p_budget, false)", "budget_outcome(ds, p_budget, true)"),),
    ),
    Mutant(
        "approved by who proposed it",
        "model",
        "instead of second-person",
        (sql("ELSIF p.proposed_by = p_by OR (", "ELSIF ("),),
        (ONE_MAY_DECIDE,),
    ),
    Mutant(
        "approved in a session of the role that proposed it",
        "model",
        "instead of second-person",
        (sql("p.proposed_role IN ('', session_user)", "p.proposed_role = ''"),),
    ),
    Mutant(
        "budget lowered below what is spent",
        "schedule owner lowers and closes",
        "overspent",
        (
            sql(
                "ELSIF lapwing.exceeds(ds.loss_spent, ds.pure_spent, to_loss, to_pure) OR to_delta < ds.delta_spent THEN",
                "ELSIF false THEN",
            ),
        ),
        NO_CHECK,
    ),
]

CHAIN_ANCHOR_DISK = [
    Mutant(
        "chain leaves the amount out",
        "schedule last unit",
        "the chain is broken",
        (sql("p_loss::text, p_delta::text, p_detail, p_evidence], VAR", "'0', p_delta::text, p_detail, p_evidence], VAR"),),
    ),
    Mutant(
        "entries not chained",
        "schedule last unit",
        "the chain is broken",
        (
            sql(
                "h text := lapwing.digest(VARIADIC lapwing.with_later(ARRAY[p_head,",
                "h text := lapwing.digest(VARIADIC lapwing.with_later(ARRAY['',",
            ),
        ),
    ),
    Mutant(
        "entry deleted",
        "schedule faults and retries",
        "ledger-rolled-back",
        (
            sql(
                FORFEITED,
                "        DELETE FROM lapwing.entry WHERE ledger_id = p_ledger_id AND charge_id = p_charge_id AND kind = 'reserve';\n"
                f"{FORFEITED}",
            ),
        ),
        (ENTRIES_MAY_GO,),
    ),
    Mutant(
        "permit before its anchor",
        "schedule last unit",
        "a permit before its anchor",
        (
            python(
                "                    self._advance(rows.state_of_texts(texts), permit, known=known)\n                    return permit",
                "                    return permit",
            ),
        ),
    ),
    Mutant(
        "anchor not checked at opening",
        "schedule restored",
        "permit without its charge",
        (python("    elif not all(holds(point) for point in points):\n", "    elif False:\n"),),
        (ANCHOR_TAKES_ANYTHING, WORKER_TAKES_ANYTHING),
    ),
    Mutant(
        "anchor put back to what is found",
        "schedule restored",
        "permit without its charge",
        (ANCHOR_TAKES_ANYTHING,),
        (WORKER_TAKES_ANYTHING,),
    ),
    Mutant(
        "answer after a refused commit",
        "schedule zombie",
        "sent without a committed charge",
        (python("            raise not_open()\n        # Anchored", "            return\n        # Anchored"),),
    ),
    Mutant(
        "no wait for the disk",
        "crash",
        "permit without its charge",
        (sql("    PERFORM pg_logical_emit_message(true, 'lapwing', '');\n", ""),),
    ),
    Mutant(
        "no wait for the disk after a commit",
        "crash",
        "sent without a committed charge",
        (sql("AS r;\n    COMMIT;\n    CALL lapwing.wait_for_disk();", "AS r;\n    COMMIT;"),),
    ),
]

USE = [
    Mutant("answer before commit", "schedule dies before commit", "sent without a committed charge", use="sends_before_commit"),
    Mutant("data read before the charge", "schedule last unit", "running without its charge", use="runs_before_reserve"),
]

MUTANTS = [*DATABASE_DECIDES, *BATCHES, *FAULTS_AND_KEYS, *WORKERS, *POLICIES, *CHAIN_ANCHOR_DISK, *USE]
