"""What a run of a plan needs of its devices, whether `train` or `launch` carries it out."""
