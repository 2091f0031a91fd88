"""CUDA C++ text → kernel programs, through libclang; launches and constants of host code from the text."""
