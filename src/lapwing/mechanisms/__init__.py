"""The textbook mechanisms, each with its exact law, its cost, an error bound and a proof.

All share one interface (:class:`lapwing.mechanisms.mechanism.Mechanism`): a mechanism is a frozen record of public parameters, and private
data is an argument. Drawing is separate, in ``lapwing.mechanisms.draw``, which checks the charge first.
"""
