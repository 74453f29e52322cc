"""Wavefront hazards: where 32 lanes are taken for granted.

The default rewrite is the logical 32-lane warp: the algorithm keeps its warps of 32, and every
cross-lane operation is confined to its own half of a 64-lane wavefront.
"""
