"""Build files: CMake, make, and nvcc's flags everywhere."""
