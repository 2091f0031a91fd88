"""nvcc's stages replayed, so that every access of the PTX has its place in the source."""
