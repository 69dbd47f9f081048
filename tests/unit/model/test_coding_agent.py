from __future__ import annotations

import re
from pathlib import Path

import pytest

from mango.model.scripted import ScriptedModel, find_script
from mango.ports import Cancellation, Json, ModelAnswer
from tests.unit.model.conversation import BASH, CODING_TOOLS, ask, converse, said, user
from tests.unit.model.workshop import BROKEN, REPAIRED, TESTS, Workshop


def play(workshop: Workshop, messages: list[Json] | None = None) -> list[ModelAnswer]:
    model = ScriptedModel("coding-agent", find_script("coding-agent"), think_seconds=0)
    messages = messages if messages is not None else [user("Run the tests and repair invoice.py.")]
    return converse(model, messages, CODING_TOOLS, workshop.run)


def test_repairs_the_invoice(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    answers = play(workshop)
    assert workshop.source == REPAIRED
    assert workshop.names() == ["bash", "read", "edit", "bash", "edit", "bash"]
    end = said(answers[-1])
    assert "All 4 tests pass now" in end
    assert "`subtotal`: `price + quantity` had to be `price * quantity`" in end
    assert "`delivery`: `amount > 5000` had to be `amount >= 5000`" in end
    assert (tmp_path / "test_invoice.py").read_text() == TESTS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["invoice.py", "test_invoice.py"]


def test_second_message_reruns_and_explains(tmp_path: Path) -> None:
    messages = [user("Repair it.")]
    workshop = Workshop(tmp_path)
    play(workshop, messages)
    workshop.calls.clear()
    messages.append(user("Rerun the tests and explain the existing code."))
    end = said(play(workshop, messages)[-1])
    assert workshop.names() == ["bash", "read"]
    assert "All 4 tests pass; nothing had to be changed" in end
    assert "`checkout(lines)`: What is to be paid." in end
    assert "returns `sum((price * quantity for price, quantity in lines))`" in end
    ids = [b["id"] for m in messages if m["role"] == "assistant" for b in m["content"] if b["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) == 8


def test_nothing_is_edited_when_nothing_fails(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, REPAIRED)
    assert "nothing had to be changed" in said(play(workshop)[-1])
    assert workshop.names() == ["bash", "read"]


LOOPS = """\
FREE_FROM = 5_000
FEE = 500


def subtotal(entries: "list[tuple[int, int]]") -> int:
    total = 0
    for unit_price, count in entries:
        line = unit_price + count  # per line
        total += line
    return total


def delivery(cents: int) -> int:
    if cents > FREE_FROM:
        return 0
    return FEE


def checkout(entries):
    return subtotal(entries) + delivery(subtotal(entries))
"""
REVERSED = BROKEN.replace("0 if amount > 5000 else 500", "500 if 5000 >= amount else 0")
DEFAULTS = BROKEN.replace("def delivery(amount):", "def delivery(amount, free=5000):").replace("> 5000", "> free")
TWINS = BROKEN + "\n\ndef old(lines):\n    return sum(price + quantity for price, quantity in lines)\n"
UMLAUTS = BROKEN.replace('"""Sum of the lines."""', 'x = "äöü€"; y = (\n        "ß")').replace("\n", "\r\n")


@pytest.mark.parametrize(
    "source", [LOOPS, REVERSED, DEFAULTS, TWINS, UMLAUTS], ids=["loops", "reversed", "defaults", "twins", "umlauts"]
)
def test_copes_with_other_styles(tmp_path: Path, source: str) -> None:
    workshop = Workshop(tmp_path, source)
    answers = play(workshop)
    assert "All 4 tests pass now" in said(answers[-1])
    assert workshop.names().count("edit") == 2


def test_only_one_bug(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, BROKEN.replace("> 5000", ">= 5000"))
    play(workshop)
    assert workshop.source == REPAIRED
    assert workshop.names() == ["bash", "read", "edit", "bash"]


def test_other_names(tmp_path: Path) -> None:
    names = {"subtotal": "net", "delivery": "postage", "checkout": "payable", "price": "p", "quantity": "n"}

    def renamed(text: str) -> str:
        return re.sub("|".join(names), lambda match: names[match[0]], text)

    workshop = Workshop(tmp_path, renamed(BROKEN), renamed(TESTS))
    play(workshop)
    assert workshop.source == renamed(REPAIRED)


def test_without_numbers_to_go_by_the_tests_decide(tmp_path: Path) -> None:
    """The failing lines show names only, so wrong guesses happen, and are taken back."""
    tests = TESTS.replace("[(1200, 3), (700, 2)]", "LINES").replace(
        "import unittest", "import unittest\n\nLINES = [(1200, 3), (700, 2)]"
    )
    source = BROKEN.replace(
        "return sum(price + quantity for price, quantity in lines)",
        "rest = 2 - 2\n    return rest + sum(price - quantity for price, quantity in lines)",
    )
    workshop = Workshop(tmp_path, source, tests)
    end = said(play(workshop)[-1])
    assert "All 4 tests pass now" in end
    assert "rest = 2 - 2\n    return rest + sum(price * quantity for" in workshop.source
    assert workshop.names().count("edit") > 2
    assert end.count("had to be") == 2


def test_what_it_cannot_repair_is_left_as_it_was(tmp_path: Path) -> None:
    source = REPAIRED.replace("else 500", "else 501")
    workshop = Workshop(tmp_path, source)
    assert "cannot derive a repair" in said(play(workshop)[-1])
    assert workshop.source == source


def test_one_repaired_one_not(tmp_path: Path) -> None:
    source = BROKEN.replace("else 500", "else 501")
    workshop = Workshop(tmp_path, source)
    end = said(play(workshop)[-1])
    assert "had to be `price * quantity`" in end
    assert "cannot derive a repair" in end
    assert "price * quantity" in workshop.source


@pytest.mark.parametrize("source", ["def subtotal(:\n", "raise SystemExit\n", "print('no functions')\n"])
def test_broken_modules_are_not_edited(tmp_path: Path, source: str) -> None:
    workshop = Workshop(tmp_path, source)
    answers = play(workshop)
    assert answers[-1].stop_reason == "end_turn"
    assert "edit" not in workshop.names()
    assert workshop.source == source


def test_no_tests_no_edit(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    (tmp_path / "test_invoice.py").unlink()
    assert "cannot tell" in said(play(workshop)[-1])
    assert set(workshop.names()) == {"bash"}


def test_a_lost_result_is_asked_for_again(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    lost = iter([1, 3])

    def run(name: str, arguments: Json) -> tuple[str, bool]:
        if len(workshop.calls) == following[0]:
            following[0] = next(lost, -1)
            return "the outcome of this call is unknown", True
        return workshop.run(name, arguments)

    following = [0]
    model = ScriptedModel("coding-agent", find_script("coding-agent"), think_seconds=0)
    answers = converse(model, [user("Repair it.")], CODING_TOOLS, run)
    assert "All 4 tests pass now" in said(answers[-1])
    assert workshop.source == REPAIRED


def test_needs_its_tools() -> None:
    model = ScriptedModel("coding-agent", find_script("coding-agent"), think_seconds=0)
    assert "read, edit" in said(model.request(ask([user("go")], [BASH]), Cancellation()))
