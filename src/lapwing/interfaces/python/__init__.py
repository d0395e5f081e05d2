"""The Python API for analysts: data sets, answers, prices. No privacy logic here."""
