"""Power commands measure the energy of a command and fit models of watts."""
