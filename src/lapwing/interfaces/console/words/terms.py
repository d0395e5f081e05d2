"""Every term that pages use: its name, two sentences, and a page with more. Pages and documentation show only these texts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """A technical term and its meaning."""

    key: str
    """The end of its address, and the name of its picture."""
    name: str
    meaning: str
    """Exactly two sentences: what it is, and what it means for the reader."""
    shows: str
    """A description of the picture, for screen readers."""
    page: str
    """A page of the documentation with more about it."""


TERMS: tuple[Term, ...] = (
    Term(
        "epsilon",
        "Epsilon",
        "Epsilon limits how much all answers together can change the odds of any statement about one person: by a factor of e to the "
        "epsilon, which is 1.1 for 0.1 and 2.7 for 1. Smaller is more private and noisier, and the epsilon that matters is that "
        "of the whole budget, not of one question.",
        "Two hills, the answers with somebody and without: for a small epsilon they nearly cover each other, for a large one they do not.",
        "explanation/guarantee",
    ),
    Term(
        "delta",
        "Delta",
        "Delta is the small chance that the limit of epsilon does not hold. It has to be far below one over the number of people, "
        "and is one in a million million unless the owner sets another value.",
        "A hill of likely noise; the very end of its slope is set apart.",
        "explanation/guarantee",
    ),
    Term(
        "rho",
        "Rho",
        "Rho is the measure of charges, because the rhos of several questions add up to the rho of all of them, and epsilons "
        "do not. The whole budget in rho gives the promised epsilon and delta, so compare shares of the budget.",
        "Two short bars, one after the other, are as long as the bar below them.",
        "explanation/planning",
    ),
    Term(
        "unit",
        "Unit",
        "The unit is what the promise protects: usually a person, with all of their rows in all tables together. A person "
        "who appears under two identifiers is two units, and is protected only half as well.",
        "A person, and lines to three rows in two tables.",
        "explanation/guarantee",
    ),
    Term(
        "neighbours",
        "Neighbours",
        "Two data sets are neighbours if they differ in one unit: all rows of one person are removed, or replaced by "
        "another's. The promise is that a reader of the answers can hardly tell which of two neighbours they come from.",
        "Two tables that are equal except for one row, which is missing in the second.",
        "explanation/guarantee",
    ),
    Term(
        "sensitivity",
        "Sensitivity",
        "Sensitivity is the most that one unit can change an answer, whatever the data is. Noise grows with it, so the less one "
        "unit can add, the more accurate an answer is.",
        "Two bars, with somebody and without, and the difference between them marked.",
        "proofs/sensitivity",
    ),
    Term(
        "clipping",
        "Clipping",
        "Clipping limits what one unit adds to an answer: rows beyond a number are left out, and values beyond a bound are set to "
        "it. It makes the noise smaller and the answer a little too small, and a note estimates how much is missing.",
        "Bars of several people below a level; what is above it is cut off.",
        "explanation/accuracy",
    ),
    Term(
        "noise",
        "Noise",
        "Noise is a random number that is added to each measured value before anybody sees it. Its typical size depends on public "
        "facts, never on the rows.",
        "A hill of likely noise around a value, and a point beside its middle: the answer.",
        "tutorials/lesson-2-noise",
    ),
    Term(
        "mechanism",
        "Mechanism",
        "A mechanism is a way of answering that keeps the promise, such as adding noise to a count or choosing a median by noisy "
        "scores. Which one is used, and how large its noise is, is shown before you ask.",
        "Rows go into a box with a die on it, and one number comes out.",
        "reference/mechanisms",
    ),
    Term(
        "error-bar",
        "Error bar",
        "An error bar shows how far the answer may be from the value in the data: in 95 of 100 answers that value is inside the bar. "
        "It says nothing about how well the data describes the world.",
        "A point with a bar to both sides; the value in the data lies inside.",
        "how-to/read-an-answer",
    ),
    Term(
        "mostly-noise",
        "Mostly noise",
        "A value that is no larger than its own noise is marked, and drawn hollow, because the value in the data may be zero. Larger "
        "groups or a larger epsilon give clearer values.",
        "A hollow bar that is shorter than its error bar.",
        "how-to/read-an-answer",
    ),
    Term(
        "hidden-groups",
        "Hidden groups",
        "Undeclared groups are shown only if enough people are in them, because the name of a group alone could reveal "
        "somebody. If the owner declares the values of a column, every group is shown, and empty ones have noise around "
        "zero.",
        "Bars above a level are shown; those below it are hollow.",
        "proofs/key-threshold",
    ),
    Term(
        "budget",
        "Budget",
        "The budget is the most that all answers together may reveal about one unit, for as long as the data set exists. Once it is "
        "spent, questions that would cost something are refused, and earlier answers stay free.",
        "A gauge that is partly filled.",
        "how-to/choose-a-budget",
    ),
    Term(
        "ceiling",
        "Ceiling",
        "The ceiling is the highest budget that the owner may ever set, declared on the first day. The promise is made for the "
        "ceiling, and going beyond it is a new promise that the ledger shows for ever.",
        "A gauge inside a larger, dashed one.",
        "explanation/guarantee",
    ),
    Term(
        "share",
        "Share",
        "A share is the most that one analyst may spend of the whole budget. Shares may add up to more than the budget, and then "
        "the first to ask is served first.",
        "A gauge with two parts, each below a person.",
        "how-to/shared-ledger",
    ),
    Term(
        "price",
        "Price",
        "The price of a question is what asking it would charge, in epsilon and as a share of the budget. It is known before you "
        "ask, and finding it is free and reads no row.",
        "A price tag before a closed table.",
        "how-to/few-questions",
    ),
    Term(
        "charge",
        "Charge",
        "A charge is what one answer takes from the budget, recorded before any row is read. It is kept even if the answer "
        "fails, because a failure could reveal something too.",
        "A coin goes from the gauge into the ledger.",
        "explanation/life-cycle",
    ),
    Term(
        "replay",
        "Replay",
        "The same question about the same version gets the same answer again, and costs nothing. So nobody can repeat a question "
        "and average the noise away.",
        "Two questions lead to the same number.",
        "explanation/life-cycle",
    ),
    Term(
        "release",
        "Release",
        "A release is measured once and paid for once, and then answers many questions for free. Everything that anybody computes "
        "from it is covered by the same promise.",
        "One coin leads to a table, and from there many arrows lead on.",
        "explanation/releases",
    ),
    Term(
        "ledger",
        "Ledger",
        "The ledger lists every charge, decision and incident of a data set, and each entry holds a digest of the one before. An "
        "entry that is changed later breaks the chain, and checking it shows where.",
        "Three entries, linked to each other like a chain.",
        "explanation/postgres-ledger",
    ),
    Term(
        "receipt",
        "Receipt",
        "A receipt is a signed note of who paid what for which answer. A person with the owner's public key can check it without "
        "asking anybody.",
        "A slip of paper with a seal and a tick.",
        "how-to/audit",
    ),
    Term(
        "incident",
        "Incident",
        "An incident is a failure after rows were read: the analyst sees one fixed text, the charge is kept, and the data set "
        "closes. The owner investigates and reopens the data set, with a reason that the ledger keeps.",
        "A warning sign before a closed door.",
        "explanation/guarantee",
    ),
    Term(
        "approval",
        "Two people",
        "More budget is proposed by one person and approved by another. So nobody can weaken the promise alone.",
        "Two people, and a tick between them.",
        "how-to/shared-ledger",
    ),
    Term(
        "catalogue",
        "Catalogue",
        "The catalogue is what the owner declares: whose rows these are, which values can occur, and how much may be revealed. "
        "Everything in it is public, so it must come from public knowledge and not from the rows.",
        "A sheet with three lines, and beside it a table that stays closed.",
        "reference/catalogue",
    ),
    Term(
        "declared-values",
        "Declared values",
        "Declared values are the range or the list of values that a column may have. A value outside is moved to the nearest end "
        "or becomes NULL, so a wrong declaration costs accuracy and never privacy.",
        "A line between two ends; a point beyond one end is moved to it.",
        "reference/catalogue",
    ),
    Term(
        "public-table",
        "Public table",
        "A public table says nothing about anybody who is protected, such as a list of clinics. It is shown as it is, without "
        "noise and without a price.",
        "A table under an open eye.",
        "reference/catalogue",
    ),
    Term(
        "preparation",
        "Preparation",
        "Preparation reads the sources once, forces every value into what was declared, and writes a version. Only the owner sees "
        "what it left out, because these numbers are exact.",
        "Rows go through a frame; one is put aside.",
        "proofs/preparation",
    ),
    Term(
        "version",
        "Version",
        "A version is a snapshot of the sources that never changes. A new version brings no new budget, because what was revealed "
        "about a person before still counts.",
        "Three sheets on top of each other, and one gauge for all of them.",
        "explanation/life-cycle",
    ),
    Term(
        "public-moment",
        "Public moment",
        "An answer leaves the server at a moment that was fixed before any row was read. So its timing reveals nothing about the rows.",
        "A clock with its hand on a mark.",
        "explanation/public-moments",
    ),
)
BY_KEY: dict[str, Term] = {term.key: term for term in TERMS}
