"""How the blocking twin is written: the parts of `_mirror.py`, on the standard library alone.

    _words     what is said otherwise in the blocking world
    _bodies    the statements that hand a call to the asynchronous twin
    _module    one module's classes, with heads sliced from the source and bodies of our own
    _faces     packages, and modules that only show the names of another

Files here begin with an underscore: what does not, in this package, is generated.
"""
