"""The long versions of the randomised tests: each module runs alone, all of them with `nox -s campaign`."""
