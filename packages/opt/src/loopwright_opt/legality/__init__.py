"""When a scheduling step is legal: each rule one function, its reason one sentence.

`splits` cuts of one axis · `loops` order, threads, scans · `parts` reduces joined in a second
launch · `streams` pages walked at once · `stages` copies · `keeps` values that others read ·
`hints` prefetches, stores around the cache · `workgroups` threads that work together · `cores`
tensor cores · `whole` what is asked again after every step.
"""
