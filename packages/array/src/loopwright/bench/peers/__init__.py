"""One module a peer: its version, and each workload as it is best written there."""
