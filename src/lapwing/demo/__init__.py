"""The demonstration data set "clinic": made-up people, their visits and prescriptions, and the catalogue that declares them.

The people in it are invented. The rows come from a fixed seed, so that a tutorial, a test and a bug report can speak of the same data; this
is the only place in the product where a seed is right, because nothing here is noise.
"""

from lapwing.demo.write import PATIENTS_DEFAULT, PATIENTS_MAX, write_demo

__all__ = ["PATIENTS_DEFAULT", "PATIENTS_MAX", "write_demo"]
