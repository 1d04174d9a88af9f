"""What the page of a batch and the command line both say: amounts, figures, outcomes and advice in words."""
