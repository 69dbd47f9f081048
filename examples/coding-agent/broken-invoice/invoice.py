"""Amounts of an invoice, in whole cents."""

FREE_DELIVERY_FROM = 5000
DELIVERY_FEE = 500


def subtotal(lines: list[tuple[int, int]]) -> int:
    """The goods: each line has the price of one piece and the number of pieces."""
    return sum(price + quantity for price, quantity in lines)


def delivery(goods: int) -> int:
    """The fee for sending goods of this value; nothing from FREE_DELIVERY_FROM on."""
    return 0 if goods > FREE_DELIVERY_FROM else DELIVERY_FEE


def checkout(lines: list[tuple[int, int]]) -> int:
    """What the customer pays: the goods and their delivery."""
    goods = subtotal(lines)
    return goods + delivery(goods)
