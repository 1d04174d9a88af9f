"""The version, as the package's metadata has it too."""

__version__ = "0.1.0"
