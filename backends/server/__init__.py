"""The parameter server holds the weights; its workers pull them and push gradients."""
