"""Terms in plain words: each in two sentences with a picture; the single source for pages and documentation."""

from lapwing.interfaces.console.words.pictures import picture
from lapwing.interfaces.console.words.terms import BY_KEY, TERMS, Term

__all__ = ["BY_KEY", "TERMS", "Term", "picture"]
