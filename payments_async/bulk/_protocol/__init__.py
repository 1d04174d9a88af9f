"""The payout protocol, as pure functions. In parentheses: sections and gaps of docs/interface.md."""
