"""The text of a statement: tokens, the foreign parser, the reader that consumes all of it, and Lapwing's own words."""
