#!/usr/bin/env python3
"""Watch an agent repair a small Python module, across the replacement of its worker. See README.md."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from coding_agent.command import check, perform
from coding_agent.failures import ExampleFailed
from coding_agent.settings import Settings


def main() -> int:
    parser = argparse.ArgumentParser(description="Watch an agent repair a small Python module.")
    parser.add_argument(
        "--process",
        action="store_true",
        help="for machines without Docker: run the tools and the tests as plain processes, without isolation",
    )
    parser.add_argument("--check", action="store_true", help="only see whether containers can do their part")
    options = parser.parse_args()
    try:
        settings = Settings.read(os.environ, process=options.process)
    except ExampleFailed as failure:
        print(f"coding-agent: {failure}", file=sys.stderr)
        return 2
    return asyncio.run(check(settings) if options.check else perform(settings))


if __name__ == "__main__":
    sys.exit(main())
