"""Images of tasks: found, pulled, loaded or built once, and known by their content."""

from gagar_env.images.resolve import resolve_image

__all__ = ["resolve_image"]
