"""Planning: the choice of bounds and noise, and the split of a statement's budget. Untrusted: every plan is certified before it is run."""
