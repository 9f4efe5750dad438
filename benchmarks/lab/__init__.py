"""A lab is a fleet on one machine: network namespaces, control groups, real sshd and iperf3."""
