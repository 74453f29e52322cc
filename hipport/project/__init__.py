"""Which files a run is about, git's view of them, and writing them. Knows nothing of CUDA."""
