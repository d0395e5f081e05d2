"""SELECT over answers: post-processing, which costs nothing."""
