"""The text of a statement: tokens, the third-party parser, the reader that consumes all of it, and Lapwing's own words."""
