"""The model of poison parking holds in every state, and notices when one of its rules is left out."""

from __future__ import annotations

import pytest

from tests.model.poison import Left, Violation, explore

CONFIGS = {
    "workers that always die": Left(turns=2, interrupts=1),
    "one result, then death": Left(turns=2, width=2, results=1, interrupts=1),
    "all results come": Left(turns=2, results=2),
    "an operator stops": Left(turns=2, interrupts=1, stops=1),
    "a result and an interrupt race": Left(turns=1, width=2, interrupts=1, results=1, stops=1),
    "leases expire under living workers": Left(turns=2, results=1, interrupts=1, expiries=1),
}
MUTANTS = {
    "no_count": "claims are not counted",
    "no_carry": "a successor begins to count anew",
    "no_reset": "a result does not clear the count",
    "claim_spent": "spent work can be claimed",
    "silent": "parking tells nobody",
    "end_unconditional": "the end is not conditional on the calls it read",
    "pointer_unmoved": "parking leaves the pointer's version",
    "ask_unconditional": "opening calls is not conditional on the pointer it read",
    "token_survives": "the token of parked work stays good",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_holds(name: str) -> None:
    states, parked = explore(CONFIGS[name])
    assert states > 50
    assert parked, "parking was never reached, so nothing was shown"


@pytest.mark.parametrize("broken", MUTANTS)
def test_a_rule_left_out_is_noticed(broken: str) -> None:
    assert any(violated(left, broken) for left in CONFIGS.values()), MUTANTS[broken]


def violated(left: Left, broken: str) -> bool:
    try:
        explore(left, broken)
    except Violation:
        return True
    return False
