"""The line protocol of a bench's side: one JSON request a line on standard input, one JSON answer a line on standard output.

Request: {"case": name, "repeat": n, ...parameters of the case}.
Answer: {"seconds": [one a repetition], "count": units of work in one repetition, "peak_rss": bytes, "values": {...}}
or {"error": text}.
"""

import json
import os
import sys
import time
import traceback


def peak_rss():
    """The process's largest resident set so far, in bytes."""
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def answers():
    """A function that writes an answer. Everything else that prints goes to standard error from here on."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def write(answer):
        out.write(json.dumps(answer) + "\n")
        out.flush()

    return write


def requests():
    for line in sys.stdin:
        if line.strip():
            yield json.loads(line)


def timed(work, repeat):
    """Seconds of each of `repeat` calls."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def serve(handle):
    """Answers every request with handle(request), a dict with at least seconds and count."""
    write = answers()
    for request in requests():
        try:
            write(handle(request) | {"peak_rss": peak_rss()})
        except Exception as error:
            traceback.print_exc()
            write({"error": f"{type(error).__name__}: {error}"})
