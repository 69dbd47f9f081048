"""A worker for the tests of the coding script: really runs its tool calls in a directory."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mango.ports import Json

TESTS = """\
import unittest

from invoice import checkout, delivery, subtotal


class InvoiceTest(unittest.TestCase):
    def test_quantity(self):
        self.assertEqual(subtotal([(1200, 3), (700, 2)]), 5000)

    def test_empty(self):
        self.assertEqual(subtotal([]), 0)

    def test_threshold(self):
        for amount, expected in [(4999, 500), (5000, 0), (5001, 0)]:
            with self.subTest(amount=amount):
                self.assertEqual(delivery(amount), expected)

    def test_checkout(self):
        self.assertEqual(checkout([(1200, 3), (700, 2)]), 5000)
        self.assertEqual(checkout([(1000, 2)]), 2500)
"""

BROKEN = '''\
"""Invoices in cents."""


def subtotal(lines):
    """Sum of the lines."""
    return sum(price + quantity for price, quantity in lines)


def delivery(amount):
    """Fee, free from a threshold on."""
    return 0 if amount > 5000 else 500


def checkout(lines):
    """What is to be paid."""
    amount = subtotal(lines)
    return amount + delivery(amount)
'''

REPAIRED = BROKEN.replace("price + quantity", "price * quantity").replace("> 5000", ">= 5000")


class Workshop:
    """The tools of a worker, with a directory as its workspace."""

    def __init__(self, folder: Path, source: str = BROKEN, tests: str = TESTS) -> None:
        self.folder = folder
        self.calls: list[tuple[str, Json]] = []
        (folder / "invoice.py").write_text(source)
        (folder / "test_invoice.py").write_text(tests)

    @property
    def source(self) -> str:
        return (self.folder / "invoice.py").read_text()

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def run(self, name: str, arguments: Json) -> tuple[str, bool]:
        """The tool's output, and whether it is an error."""
        self.calls.append((name, arguments))
        if name == "bash":
            done = subprocess.run(
                ["bash", "-c", arguments["command"]],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=20,
            )
            return done.stdout or "(no output)", done.returncode != 0
        path = self.folder / arguments["file_path"]
        if not path.is_relative_to(self.folder) or not path.is_file():
            return f"no such file: {path}", True
        text = path.read_text()
        if name == "read":
            return text, False
        assert name == "edit"
        if text.count(arguments["old_string"]) != 1:
            return f"old_string occurs {text.count(arguments['old_string'])} times", True
        path.write_text(text.replace(arguments["old_string"], arguments["new_string"]))
        return f"edited {path} (1 replacement(s))", False
