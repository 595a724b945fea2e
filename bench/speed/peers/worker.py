"""What the peers of bench/steps share: whole training steps, one at a time, told and timed over pipes.

A peer is run as `python X_steps.py NETWORK MODE THREADS`. It prints the tool's version when it is ready, then answers each
line that it reads with one step's milliseconds and the bytes by which its peak of resident memory lies above what it held
before its first step. With MALLOC_MMAP_THRESHOLD_ set low, what is freed is given back, and that is the peak of live memory.
"""
import sys
import time


def resident(key):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(key + ":"))


def serve(version, step):
    idle = resident("VmRSS")
    with open("/proc/self/clear_refs", "w") as clear:
        clear.write("5")                              # the peak so far is forgotten
    for _ in range(2):
        step()
    print(version, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        step()
        print(1e3 * (time.perf_counter() - start), resident("VmHWM") - idle, flush=True)
