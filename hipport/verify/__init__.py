"""Does the port compute the same: toolchains, kernel specifications, comparison, back ends."""
