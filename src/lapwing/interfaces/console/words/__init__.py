"""Plain words: each term in two sentences with a picture; the one source for pages and for the documentation."""

from lapwing.interfaces.console.words.pictures import picture
from lapwing.interfaces.console.words.terms import BY_KEY, TERMS, Term

__all__ = ["BY_KEY", "TERMS", "Term", "picture"]
