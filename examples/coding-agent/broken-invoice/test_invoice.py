import unittest

from invoice import checkout, delivery, subtotal


class InvoiceTest(unittest.TestCase):
    def test_every_piece_is_charged(self) -> None:
        self.assertEqual(subtotal([(1250, 2), (500, 5)]), 5000)

    def test_no_lines_cost_nothing(self) -> None:
        self.assertEqual(subtotal([]), 0)

    def test_delivery_is_free_from_the_threshold(self) -> None:
        for goods, fee in [(4999, 500), (5000, 0), (5001, 0)]:
            with self.subTest(goods=goods):
                self.assertEqual(delivery(goods), fee)

    def test_checkout_adds_delivery(self) -> None:
        self.assertEqual(checkout([(1250, 2), (500, 5)]), 5000)
        self.assertEqual(checkout([(1000, 2)]), 2500)


if __name__ == "__main__":
    unittest.main()
