"""The whole table: every workload by Loopwright and each peer that is installed, in turns.

    uv run --group bench benchmarks/run.py --threads 1
    uv run --group bench benchmarks/run.py --python torch=OTHER/bin/python
    uv run --group bench benchmarks/run.py sgemm softmax --peers loopwright,numpy --json

It is `loopwright bench`, which says what the options are: `--help`.
"""

import sys

from loopwright.cli.program import program

if __name__ == "__main__":
    program(["bench", *sys.argv[1:]])
