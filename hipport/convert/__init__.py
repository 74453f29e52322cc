"""From facts and rules to a plan, and from a plan to new bytes."""
