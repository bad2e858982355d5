"""A network of a few layers, on PyTorch."""
