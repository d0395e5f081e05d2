"""How much one unit contributes to a statement: models of contributions, and the clipping bounds chosen from them."""
