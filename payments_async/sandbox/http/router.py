"""What is at `/_sandbox/`: the control API below `/_sandbox/api/`, the inspector's pages everywhere else.

No part of the API: it needs no key, counts against no limit and is not in the request log. Both halves are
imported with their first request, so that a sandbox nobody looks at pays nothing for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.operations import CONTROL_API
from ..common.values import Answer, Request, Stream

if TYPE_CHECKING:
    from .._controls import SandboxControls


def answer_console(sandbox: SandboxControls, request: Request) -> Answer | Stream:
    """Answer a request under `/_sandbox/`; never raises for what a request says."""
    if request.path.startswith(CONTROL_API):
        from ..control_api import answer_control

        return answer_control(sandbox, request)
    from ..inspector import answer_page

    return answer_page(sandbox, request)


def keep_findings(sandbox: SandboxControls) -> None:
    """Have the Advisor look at the journal, which is about to let its oldest entries go."""
    from ..advisor.findings import findings_of

    findings_of(sandbox).look(sandbox)
