"""Answers as people see them: text, charts, notebooks, data frames."""
