#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one benchmark suite and judges it.

Contestants are programs that speak the line protocol of bench/harness/contestant.h and stay alive
between samples. For every measure the driver takes pairs of short samples, one of ours and one of
the peer's, in alternating order. The ratio is the median of the pairs' ratios of wall time (of CPU
time if the measure says so, of bytes or system calls if those were counted), with a bootstrap 95 %
interval. A measure is missed when the interval's lower end exceeds its target.

With several peers a pair is one sample of each. The best of them is the one with the highest median
ratio, and it alone is judged; the others are shown for reference. Neither the lowest sample of each
pair decides, which would favour whoever is noisy, nor the lowest median, which would favour whoever
was not running while the machine was busy.

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
COUNTS = {"bytes": "B", "syscalls": "calls"}  # what a sample may count instead of time: its unit


class Unavailable(Exception):
    """A contestant that is absent, dies, does not answer in time, or answers with an error."""


class Contestant:
    """One program. Started on first use, and again after it failed.

    Its command names programs, and options that begin with a dash.
    """

    def __init__(self, name, command, folders, cpu):
        self.name, self.command, self.folders, self.cpu = name, command, folders, cpu
        self.process = None

    def start(self):
        command = [self.resolve(word) for word in self.command.split()]
        pin = None if self.cpu is None else lambda: os.sched_setaffinity(0, {self.cpu})
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=pin,
        )

    def resolve(self, word):
        if word.startswith("-"):
            return word
        places = (folder / word for folder in self.folders)
        program = next(filter(pathlib.Path.is_file, places), None)
        if program is None:
            raise Unavailable(f"{self.name}: {word} has not been built")
        return program

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
        """The answer as a dict of floats: wall_ns and cpu_ns, or one of COUNTS."""
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
        if not sample.keys() & COUNTS.keys() and not sample.keys() >= {"wall_ns", "cpu_ns"}:
            raise Unavailable(f"{self.name}: not an answer: '{answer}'")
        return sample


@dataclasses.dataclass
class Measure:
    name: str
    run: str
    n: int
    peer: str | list[str]
    peer_run: str | None = None
    ours: str | None = None
    judge: str = "wall"
    target: float | None = None
    target_bytes: float | None = None
    target_syscalls: float | None = None
    fresh: bool = False
    pin: bool | None = None
    pairs_max: int | None = None

    def peers(self):
        return [self.peer] if isinstance(self.peer, str) else self.peer

    def limit(self):
        return self.target_bytes if self.target_syscalls is None else self.target_syscalls


@dataclasses.dataclass
class Result:
    measure: str
    peer: str
    judge: str = "wall"  # wall | cpu | bytes | syscalls: what ours, best_peer and ratio are of
    unit: str = ""
    ours: float | None = None
    ours_wall: float | None = None
    ours_cpu: float | None = None
    best_peer: float | None = None
    best_peer_wall: float | None = None
    best_peer_cpu: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    target: float | None = None
    target_bytes: float | None = None
    target_syscalls: float | None = None
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


def blank_result(measure, peer, why=""):
    return Result(
        measure.name,
        peer,
        judge=measure.judge,
        target=measure.target,
        target_bytes=measure.target_bytes,
        target_syscalls=measure.target_syscalls,
        why=why,
    )


def median_of(samples, field):
    return statistics.median(sample[field] for sample in samples) if field in samples[0] else None


def compare(measure, peer, our_samples, peer_samples):
    """Ours against one peer, judged as if it were the only one."""
    result = blank_result(measure, peer)
    count = next((key for key in COUNTS if key in our_samples[0]), None)
    result.judge = count or measure.judge
    result.unit = COUNTS[count] if count else "ns"
    field = count or f"{measure.judge}_ns"
    mine = [sample[field] for sample in our_samples]
    theirs = [sample[field] for sample in peer_samples]
    result.pairs = len(mine)
    result.ours, result.best_peer = statistics.median(mine), statistics.median(theirs)
    result.ours_wall = median_of(our_samples, "wall_ns")
    result.ours_cpu = median_of(our_samples, "cpu_ns")
    result.best_peer_wall = median_of(peer_samples, "wall_ns")
    result.best_peer_cpu = median_of(peer_samples, "cpu_ns")
    ratios = [a / b for a, b in zip(mine, theirs)]
    result.ratio, result.ratio_low, result.ratio_high = bootstrap_median(ratios)
    if measure.target is not None:
        result.verdict = "miss" if result.ratio_low > measure.target else "ok"
    elif measure.limit() is not None:
        result.verdict = "miss" if bootstrap_median(mine)[1] > measure.limit() else "ok"
    else:
        result.verdict = "reference"
    return result


def take(measure, ours, peers, pairs, deadline):
    """Runs one measure. Returns: ours against the best peer, judged, and then the other peers."""
    pairs = min(pairs, measure.pairs_max or pairs)
    peer_run = measure.peer_run or measure.run
    samples = [[] for _ in range(1 + len(peers))]
    turns = [(ours, measure.run, samples[0])]
    turns += [(peer, peer_run, taken) for peer, taken in zip(peers, samples[1:])]
    for pair in range(-1, pairs):  # pair -1 warms all of them up and is dropped
        for contestant, run, taken in turns if pair % 2 == 0 else reversed(turns):
            seconds_left = deadline - time.monotonic()
            sample = contestant.sample(run, measure.n, measure.fresh, seconds_left)
            if pair >= 0:
                taken.append(sample)

    results = [compare(measure, p.name, samples[0], t) for p, t in zip(peers, samples[1:])]
    results.sort(key=lambda result: -result.ratio)
    for other in results[1:]:
        other.verdict = "reference"
        other.target = other.target_bytes = other.target_syscalls = None
    return results


def number(value, unit=""):
    if value is None:
        return "-"
    return f"{value:#.3g}{unit}" if value < 100 else f"{value:.0f}{unit}"


def target_text(result):
    if result.target_bytes is not None:
        return f"{result.target_bytes:g}B"
    if result.target_syscalls is not None:
        return f"{result.target_syscalls:g}calls"
    return "-" if result.target is None else f"{result.target:g}"


def is_judged(result):
    return target_text(result) != "-"


def figures(wall, cpu, value, result):
    """The two cells of one side: wall and CPU time, or the count; a star at the one judged by CPU."""
    if wall is None:
        return [number(value, result.unit), "-"]
    return [number(wall, "ns"), number(cpu, "ns*" if result.judge == "cpu" else "ns")]


def print_table(results):
    head = "measure|peer|ours wall|ours cpu|peer wall|peer cpu|ratio|95 % interval|target|"
    rows = [head.split("|")]
    for r in results:
        rows.append([
            r.measure,
            r.peer,
            *figures(r.ours_wall, r.ours_cpu, r.ours, r),
            *figures(r.best_peer_wall, r.best_peer_cpu, r.best_peer, r),
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
        if is_judged(r):
            both = f"ours={number(r.ours, r.unit)} best_peer={number(r.best_peer, r.unit)}"
            judged = f"ratio={number(r.ratio)} target={target_text(r)} {r.verdict}"
            print(r.measure, both, judged)


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


class Suite:
    """A suite.toml, its measures, and its contestants: each once pinned to a core, once not."""

    def __init__(self, arguments):
        self.fields = tomllib.loads(arguments.suite.read_text())
        self.folders = [folder.absolute() for folder in arguments.programs]
        self.stand_in = arguments.ours
        self.deadline = time.monotonic() + self.fields["seconds_max"]
        self.cpu = max(os.sched_getaffinity(0))
        self.started = {}
        self.measures = [Measure(**fields) for fields in self.fields["measure"]]
        if arguments.only:
            prefixes = tuple(arguments.only)
            self.measures = [m for m in self.measures if m.name.startswith(prefixes)]

    def contestant(self, name, pin):
        if (name, pin) not in self.started:
            command = self.fields["contestants"][name]
            cpu = self.cpu if pin else None
            self.started[name, pin] = Contestant(name, command, self.folders, cpu)
        return self.started[name, pin]

    def pin_of(self, measure):
        return self.fields["pin"] if measure.pin is None else measure.pin

    def ours(self, measure):
        return self.stand_in or measure.ours or self.fields["ours"]

    def about(self):
        """What every contestant in use says of itself."""
        pins = {}
        for measure in self.measures:
            for name in (self.ours(measure), *measure.peers()):
                pins.setdefault(name, self.pin_of(measure))
        about = {}
        for name in (name for name in self.fields["contestants"] if name in pins):
            try:
                seconds_left = self.deadline - time.monotonic()
                about[name] = self.contestant(name, pins[name]).ask("info", seconds_left)
            except Unavailable as absent:
                about[name] = f"UNAVAILABLE: {absent}"
        return about

    def take(self, measure, pairs):
        pin = self.pin_of(measure)
        ours = self.contestant(self.ours(measure), pin)
        peers = [self.contestant(name, pin) for name in measure.peers()]
        try:
            return take(measure, ours, peers, pairs, self.deadline)
        except Unavailable as absent:
            print(f"bench: {measure.name} UNAVAILABLE: {absent}", file=sys.stderr)
            return [blank_result(measure, ", ".join(measure.peers()), why=str(absent))]
        finally:
            if self.fields.get("isolate", False):
                self.stop()

    def stop(self):
        for contestant in self.started.values():
            contestant.stop()


def main():
    arguments = parse_arguments()
    suite = Suite(arguments)
    if arguments.ours and arguments.ours not in suite.fields["contestants"]:
        print(f"bench: the suite has no contestant '{arguments.ours}'", file=sys.stderr)
        return 2
    about = suite.about()
    results = []
    for measure in suite.measures:
        print(f"bench: {measure.name} …", file=sys.stderr, flush=True)
        results += suite.take(measure, arguments.pairs)
    suite.stop()

    notes = []
    if arguments.pairs < PAIRS_MIN:
        notes.append(f"{arguments.pairs} pairs: fewer than {PAIRS_MIN}, not a result to quote")
    if arguments.ours:
        notes.append(f"{arguments.ours} stands in for {suite.fields['ours']}: a dry run")
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
        if any(result.judge == "cpu" for result in results):
            print("*: judged by CPU time")
        print()
        print_table(results)
        print()
        print_lines(results)

    verdicts = {result.verdict for result in results}
    return 2 if "unavailable" in verdicts else 1 if "miss" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
