"""Differential privacy as a library: the textbook's definitions and theorems as functions that can be run and checked.

Exact where a statement is exact (rational arithmetic over finite universes), with directed rounding where it is not. For people who teach,
check or design; nothing here is on the path of an answer.
"""
