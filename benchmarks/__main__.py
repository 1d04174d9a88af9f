"""Every suite, one after the other."""

from benchmarks import call_cost, decode

for suite in (call_cost, decode):
    suite.main()
    print()
