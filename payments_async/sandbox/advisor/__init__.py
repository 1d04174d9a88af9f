"""The Advisor: where an integration breaks the interface's guidance."""
