"""Guards on money: rules for what may be sent, and budgets."""
