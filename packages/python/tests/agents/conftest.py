"""What the tests with agents have around them."""

from agents_model import closed, model

__all__ = ["closed", "model"]
