"""The control API: everything the handle can do, as JSON under `/_sandbox/api/`, for tests in any language.

`GET /_sandbox/api/` lists the routes. It takes JSON, gives JSON, and says of a refusal what is wrong
and which words are near. Only this machine's own programs and pages may ask: Host and Origin are checked.
"""

from .dispatch import answer_control

__all__ = ["answer_control"]
