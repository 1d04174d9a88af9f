"""The Advisor: finds where an integration breaks the interface's guidance."""

from .advisor import Finding, advise

__all__ = ["Finding", "advise"]
