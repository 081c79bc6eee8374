"""`python -m loopwright` is `loopwright`."""

from loopwright.cli import main

main()
