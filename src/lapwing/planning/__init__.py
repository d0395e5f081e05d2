"""Planning: which bounds, which noise, how a statement's budget is split. Untrusted: every plan is certified before anything is run."""
