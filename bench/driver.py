#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one benchmark suite and judges it.

Contestants are programs that speak the line protocol of bench/harness/contestant.h and stay alive
between samples. For every measure the driver takes pairs of short samples, one of ours and one of
the peer's, in alternating order. The ratio is the median of the pairs' ratios of wall time (or
bytes), with a bootstrap 95 % interval. A measure is missed when the interval's lower end exceeds
its target.

Exit status: 0 every target met, 1 a target missed, 2 a measure could not be taken.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import threading
import time
import tomllib

PAIRS_MIN = 15
PAIRS_DEFAULT = 25
RESAMPLES = 4000
SAMPLE_SECONDS_MAX = 30


class Unavailable(Exception):
    """A contestant that is absent, dies, does not answer in time, or answers with an error."""


class Contestant:
    """One program. Started on first use, and again after it failed."""

    def __init__(self, name, program, cpu):
        self.name, self.program, self.cpu = name, program, cpu
        self.process = None

    def start(self):
        if not self.program.is_file():
            raise Unavailable(f"{self.name}: {self.program.name} has not been built")
        pin = None if self.cpu is None else lambda: os.sched_setaffinity(0, {self.cpu})
        self.process = subprocess.Popen(
            [self.program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=pin,
        )

    def stop(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        process.kill()
        process.communicate()

    def ask(self, line, seconds_max):
        if seconds_max <= 0:
            raise Unavailable("out of time: the suite's seconds_max is spent")
        if self.process is None:
            self.start()
        timer = threading.Timer(min(seconds_max, SAMPLE_SECONDS_MAX), self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if not answer:
            self.stop()
            raise Unavailable(f"{self.name}: died or was too slow at '{line}'")
        if answer.startswith("error"):
            raise Unavailable(f"{self.name}: {answer}")
        return answer

    def sample(self, run, n, fresh, seconds_max):
        """The answer as a dict of floats: wall_ns and cpu_ns, or bytes."""
        if fresh:
            self.stop()
        answer = self.ask(f"run {run} {n}", seconds_max)
        if fresh:
            self.stop()
        try:
            fields = (field.split("=") for field in answer.split())
            sample = {key: float(value) for key, value in fields}
        except ValueError:
            sample = {}
        if not sample.keys() >= {"bytes"} and not sample.keys() >= {"wall_ns", "cpu_ns"}:
            raise Unavailable(f"{self.name}: not an answer: '{answer}'")
        return sample


@dataclasses.dataclass
class Measure:
    name: str
    run: str
    n: int
    peer: str
    peer_run: str | None = None
    target: float | None = None
    target_bytes: float | None = None
    fresh: bool = False


@dataclasses.dataclass
class Result:
    measure: str
    peer: str
    unit: str = ""
    ours: float | None = None
    ours_cpu: float | None = None
    best_peer: float | None = None
    best_peer_cpu: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    target: float | None = None
    target_bytes: float | None = None
    pairs: int = 0
    verdict: str = "unavailable"  # ok | miss | reference | unavailable
    why: str = ""


def bootstrap_median(values):
    """The median and its 95 % interval. Seeded: the same samples give the same interval."""
    rng = random.Random(1)
    size = len(values)
    medians = sorted(statistics.median(rng.choices(values, k=size)) for _ in range(RESAMPLES))
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]
    return statistics.median(values), low, high


def blank_result(measure, why=""):
    return Result(
        measure.name,
        measure.peer,
        target=measure.target,
        target_bytes=measure.target_bytes,
        why=why,
    )


def take(measure, ours, peer, pairs, deadline):
    """Runs one measure and judges it."""
    result = blank_result(measure)
    our_samples, peer_samples = [], []
    peer_run = measure.peer_run or measure.run
    halves = [(ours, measure.run, our_samples), (peer, peer_run, peer_samples)]
    for pair in range(-1, pairs):  # pair -1 warms both up and is dropped
        for contestant, run, samples in halves if pair % 2 == 0 else reversed(halves):
            seconds_left = deadline - time.monotonic()
            sample = contestant.sample(run, measure.n, measure.fresh, seconds_left)
            if pair >= 0:
                samples.append(sample)

    result.unit, field = ("B", "bytes") if "bytes" in our_samples[0] else ("ns", "wall_ns")
    mine = [sample[field] for sample in our_samples]
    theirs = [sample[field] for sample in peer_samples]
    result.pairs = pairs
    result.ours, result.best_peer = statistics.median(mine), statistics.median(theirs)
    if field == "wall_ns":
        result.ours_cpu = statistics.median(sample["cpu_ns"] for sample in our_samples)
        result.best_peer_cpu = statistics.median(sample["cpu_ns"] for sample in peer_samples)
    ratios = [a / b for a, b in zip(mine, theirs)]
    result.ratio, result.ratio_low, result.ratio_high = bootstrap_median(ratios)

    if measure.target is not None:
        result.verdict = "miss" if result.ratio_low > measure.target else "ok"
    elif measure.target_bytes is not None:
        result.verdict = "miss" if bootstrap_median(mine)[1] > measure.target_bytes else "ok"
    else:
        result.verdict = "reference"
    return result


def number(value, unit=""):
    if value is None:
        return "-"
    return f"{value:#.3g}{unit}" if value < 100 else f"{value:.0f}{unit}"


def target_text(result):
    if result.target_bytes is not None:
        return f"{result.target_bytes:g}B"
    return "-" if result.target is None else f"{result.target:g}"


def print_table(results):
    head = "measure|peer|ours wall|ours cpu|peer wall|peer cpu|ratio|95 % interval|target|"
    rows = [head.split("|")]
    for r in results:
        rows.append([
            r.measure,
            r.peer,
            number(r.ours, r.unit),
            number(r.ours_cpu, r.unit),
            number(r.best_peer, r.unit),
            number(r.best_peer_cpu, r.unit),
            number(r.ratio),
            f"{number(r.ratio_low)} .. {number(r.ratio_high)}",
            target_text(r),
            r.verdict,
        ])
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_lines(results):
    for r in results:
        if r.target is not None or r.target_bytes is not None:
            figures = f"ours={number(r.ours, r.unit)} best_peer={number(r.best_peer, r.unit)}"
            judged = f"ratio={number(r.ratio)} target={target_text(r)} {r.verdict}"
            print(r.measure, figures, judged)


def machine():
    model = platform.processor() or platform.machine()
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}"


def parse_arguments():
    parser = argparse.ArgumentParser(description="Runs one benchmark suite and judges it.")
    parser.add_argument("suite", type=pathlib.Path, help="a suite.toml")
    option = parser.add_argument
    option("--programs", type=pathlib.Path, nargs="+", required=True, help="folders to look in")
    option("--pairs", type=int, default=PAIRS_DEFAULT, help="pairs per measure (%(default)s)")
    option("--json", action="store_true", help="one JSON document instead of table and lines")
    option("--only", action="append", metavar="PREFIX", help="only measures whose name starts so")
    option("--ours", metavar="CONTESTANT", help="who stands in for ours, for a dry run")
    arguments = parser.parse_args()
    if arguments.pairs < 1:
        parser.error("--pairs wants at least 1")
    return arguments


def load_suite(arguments):
    suite = tomllib.loads(arguments.suite.read_text())
    cpu = max(os.sched_getaffinity(0)) if suite["pin"] else None
    contestants = {}
    for name, program in suite["contestants"].items():
        places = [folder / program for folder in arguments.programs]
        program = next(filter(pathlib.Path.is_file, places), places[0])
        contestants[name] = Contestant(name, program, cpu)
    measures = [Measure(**fields) for fields in suite["measure"]]
    if arguments.only:
        measures = [m for m in measures if m.name.startswith(tuple(arguments.only))]
    return suite, contestants, measures


def main():
    arguments = parse_arguments()
    suite, contestants, measures = load_suite(arguments)
    deadline = time.monotonic() + suite["seconds_max"]
    ours = contestants[arguments.ours or suite["ours"]]
    used = {ours.name} | {measure.peer for measure in measures}

    about = {}
    for name in (name for name in contestants if name in used):
        try:
            about[name] = contestants[name].ask("info", deadline - time.monotonic())
        except Unavailable as absent:
            about[name] = f"UNAVAILABLE: {absent}"

    results = []
    for measure in measures:
        print(f"bench: {measure.name} …", file=sys.stderr, flush=True)
        try:
            result = take(measure, ours, contestants[measure.peer], arguments.pairs, deadline)
        except Unavailable as absent:
            print(f"bench: {measure.name} UNAVAILABLE: {absent}", file=sys.stderr)
            result = blank_result(measure, why=str(absent))
        results.append(result)
    for contestant in contestants.values():
        contestant.stop()

    notes = []
    if arguments.pairs < PAIRS_MIN:
        notes.append(f"{arguments.pairs} pairs: fewer than {PAIRS_MIN}, not a result to quote")
    if arguments.ours:
        notes.append(f"{arguments.ours} stands in for {suite['ours']}: a dry run")
    if arguments.json:
        document = {
            "suite": arguments.suite.parent.name,
            "machine": machine(),
            "contestants": about,
            "notes": notes,
            "measures": [dataclasses.asdict(result) for result in results],
        }
        print(json.dumps(document, indent=2))
    else:
        print(f"machine: {machine()}")
        for name, line in about.items():
            print(f"{name}: {line}")
        print(f"{arguments.pairs} interleaved pairs per measure; medians, per operation or task")
        for note in notes:
            print(f"note: {note}")
        print()
        print_table(results)
        print()
        print_lines(results)

    verdicts = {result.verdict for result in results}
    return 2 if "unavailable" in verdicts else 1 if "miss" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
