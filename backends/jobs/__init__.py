"""A job says what is trained: a model, its data, a loss and metrics, in one framework's types."""
