"""Every suite, one after the other."""

from benchmarks import sandbox

for suite in (sandbox,):
    suite.main()
    print()
