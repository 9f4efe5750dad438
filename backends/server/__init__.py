"""The parameter server keeps the weights; its workers pull them and push gradients."""
