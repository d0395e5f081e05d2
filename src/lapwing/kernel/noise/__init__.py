"""Drawing noise: the only package that uses OpenDP, and the only one where anything is random.

OpenDP draws from the operating system's randomness, exactly from the law named (integer or arbitrary-precision arithmetic throughout).
There are no seeds. Imported by the two gates alone: ``kernel.release``, which takes a permit, and ``lapwing.mechanisms``, which lessons and
audits use on data that no ledger protects. OpenDP itself is imported on first use, because that takes most of a second.
"""
