"""Progress on standard output."""


def say(line: str) -> None:
    """Prints at once, also into a pipe."""
    print(line, flush=True)


def plain(text: str) -> str:
    """`text` as it may go to a terminal: what a model wrote must not move the cursor or change the colours."""
    return "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in text)
