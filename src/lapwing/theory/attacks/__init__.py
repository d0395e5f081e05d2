"""The textbook attacks, each a pure function from answers to a guess, and bounds on what any attack gains under (epsilon, delta).

An attack does not know where its answers come from. Given exact answers it succeeds; given answers that are (epsilon, delta)-differentially
private it cannot gain more than :mod:`lapwing.theory.attacks.bounds` allows, and neither can any other attack. The gain of an
attacker is a probability, so attacks may use floats; the bounds are exact and rounded up.

- :mod:`~lapwing.theory.attacks.differencing`: two counts that differ in one person.
- :mod:`~lapwing.theory.attacks.averaging`: the same question, asked again and again.
- :mod:`~lapwing.theory.attacks.linkage`: a table without names, joined with one that has them.
- :mod:`~lapwing.theory.attacks.reconstruction`: many counts of overlapping sets, solved for the bit of every person.
- :mod:`~lapwing.theory.attacks.membership`: was this person among the rows at all?
"""
