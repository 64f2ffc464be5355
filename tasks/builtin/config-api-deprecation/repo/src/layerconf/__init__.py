"""Settings from several layers."""

from .config import Config, Section
from .errors import ConfigError, ConversionError, MissingKeyError
from .expand import expand
from .sources import from_environ, parse_ini

__all__ = [
    "Config",
    "ConfigError",
    "ConversionError",
    "MissingKeyError",
    "Section",
    "expand",
    "from_environ",
    "parse_ini",
]
