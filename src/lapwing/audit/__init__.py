"""Audits: lower bounds on the privacy loss of a mechanism, found by running it.

:func:`lapwing.audit.auditor.audit` takes any function; ``mechanisms``, ``plans`` and ``project`` apply it to the kernel's
mechanisms, to every shape of plan and to a declared data set; ``recorder`` checks code that draws noise step by step, deterministically.
"""
