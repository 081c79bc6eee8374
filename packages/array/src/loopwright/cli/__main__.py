"""`python -m loopwright.cli` is `loopwright`."""

from loopwright.cli import main

main()
