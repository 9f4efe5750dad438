"""What every run of training shares, whoever computes the steps and wherever the weights are."""
