"""Reports: one `Report`, many faces."""
