"""The version of SoAL: of the wheel, the image and every result."""

from typing import Final

__all__ = ["VERSION"]

VERSION: Final = "0.1.0"
