"""When a scheduling step is legal: each rule one function, its reason one sentence.

`splits` cuts of one axis · `loops` order, threads, scans · `stages` copies, kept values, hints ·
`workgroups` threads that work together · `whole` what is asked again after every step.
"""
