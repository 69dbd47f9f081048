"""How long the API function takes to import, next to the floor: boto3, Powertools and PynamoDB alone.

Each import happens in a fresh interpreter with bytecode present, as in a packaged function; the two take turns, so
that whatever else the machine does meets both alike. Processor time is what remains comparable on a busy machine.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

RUNS = 15
AIM_SECONDS, AIM_MEGABYTES = 0.35, 60

FLOOR = """
import boto3, pynamodb.models
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayRestResolver
"""
API = "import mango.handlers.api"
MEASURED = """
import json, resource, time
began, worked = time.perf_counter(), time.process_time()
{statement}
seconds, processor = time.perf_counter() - began, time.process_time() - worked
print(json.dumps([seconds, processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


class Import(NamedTuple):
    """What an import took: seconds by the clock and of the processor, and the process's largest size in MB."""

    seconds: float
    processor: float
    megabytes: float


def measure(statement: str, bytecode: str) -> Import:
    """One import in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED.format(statement=statement)],
        env=environment | {"PYTHONPYCACHEPREFIX": bytecode},
        stdout=subprocess.PIPE,
        check=True,
    )
    return Import(*json.loads(done.stdout))


def main() -> None:
    floor: list[Import] = []
    api: list[Import] = []
    with tempfile.TemporaryDirectory() as bytecode:
        for statement in (FLOOR, API):  # compiles
            measure(statement, bytecode)
        for _ in range(RUNS):
            floor.append(measure(FLOOR, bytecode))
            api.append(measure(API, bytecode))
    table = Table(
        "import", "best", "median", "processor", "memory", "aim", title=f"Cold start, {RUNS} fresh interpreters each"
    )
    aim = f"≤ {AIM_SECONDS} s, ≤ {AIM_MEGABYTES} MB"
    for name, taken, wanted in (("mango.handlers.api", api, aim), ("floor: boto3, powertools, pynamodb", floor, "")):
        seconds = [one.seconds for one in taken]
        size = max(one.megabytes for one in taken)
        best, middle = min(seconds), statistics.median(seconds)
        processor = min(one.processor for one in taken)
        table.add_row(name, f"{best:.3f} s", f"{middle:.3f} s", f"{processor:.3f} s", f"{size:.0f} MB", wanted)
    Console().print(table)


if __name__ == "__main__":
    main()
