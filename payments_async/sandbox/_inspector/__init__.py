"""The inspector: pages at `/_sandbox/` that show what the sandbox sees, does and would do, live.

Rendered here with Jinja2 (the `sandbox` extra), readable without JavaScript; one small module of our own
keeps them fresh and sends what the buttons ask for to the control API.
"""

from .site import answer_page

__all__ = ["answer_page"]
