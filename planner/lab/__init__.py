"""A fleet out of real parts on one machine: network namespaces, control groups, real sshd and iperf3."""
