"""Checks of what a release publishes.

    artifacts   metadata, contents and bill of materials of the built files; two builds are equal
    installing  each extra, installed into an empty environment and started
    programs    what each of these environments runs

`nox -s release` runs them.
"""
