"""This package has what a run of a plan needs of its devices; `train` and `launch` use it."""
