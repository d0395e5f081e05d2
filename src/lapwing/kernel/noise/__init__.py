"""Drawing noise: the only package where anything is random, and the only one that uses OpenDP.

All randomness is the operating system's, and all draws are exactly of the law named (integers and fractions throughout). There are no
seeds, and no random state is kept between calls. Imported by the two gates alone: ``kernel.release``, which takes a permit, and
``lapwing.mechanisms``, which lessons and audits use on data that no ledger protects. OpenDP, where an owner chooses its samplers, is
imported on first use, because that takes most of a second.
"""
