"""The benchmark table: the same workloads by Loopwright and by its peers, in turns."""
