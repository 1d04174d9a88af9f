"""Writes the blocking twin: `python -m tools.mirror`. Needs the standard library alone; not in the wheel.

words      the words that differ in blocking code
arguments  the signatures and Args sections of both packages
bodies     the statements that hand a call to the asynchronous twin
module     one module's classes, with heads sliced from the source
faces      packages, and modules that only show the names of another
"""
