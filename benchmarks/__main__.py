"""Every suite, one after the other."""

from benchmarks import call_cost, decode, sandbox

for suite in (call_cost, decode, sandbox):
    suite.main()
    print()
