"""The textbook's mechanisms, each with its exact law, what it costs, how far off it may be, and a proof.

One calling shape for all (:class:`lapwing.mechanisms.mechanism.Mechanism`): a mechanism is a frozen record of public parameters, and
what is private is an argument. Drawing is a separate act, in ``lapwing.mechanisms.draw``, which checks the price first.
"""
