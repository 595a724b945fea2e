"""What PyTorch's ends of bench/kernels and bench/ops share: one call at a time, told and timed over pipes.

Reads lines and answers each with one: `run CALLS` runs the call that was set last and answers the seconds; any other
line sets one (1: ready).
"""
import sys
import time


def serve(version, call_of):
    """call_of: of a line's words."""
    print(version, flush=True)
    call = None
    for line in sys.stdin:
        words = line.split()
        if words[0] == "run":
            start = time.perf_counter()
            for _ in range(int(words[1])):
                call()
            print(time.perf_counter() - start, flush=True)
        else:
            call = call_of(*words)
            print(1, flush=True)
