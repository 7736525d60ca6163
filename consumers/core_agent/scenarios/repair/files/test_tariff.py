import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "src"))

from {{v.module}} import {{v.function}}


class Price(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual({{v.function}}(0), 0)

    def test_beyond_the_limit(self):
        self.assertEqual({{v.function}}({{s.shown}}), {{s.limit}} * {{s.low}} + {{s.beyond}} * {{s.high}})

    def test_negative(self):
        with self.assertRaises(ValueError):
            {{v.function}}(-1)


if __name__ == "__main__":
    unittest.main()
