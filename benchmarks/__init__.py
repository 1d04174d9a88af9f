"""What calls cost, as ratios against peers measured in the same run: `nox -s bench`."""
