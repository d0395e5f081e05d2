"""What is selected from answers: post-processing, which costs nothing."""
