"""What the `swebench` package knows, asked in processes of its own: it never comes into this one.

The package brings docker, modal, datasets and pandas into whoever imports it. Here it lies in a cached environment
without its dependencies, and a small program loads only the part that is asked for.
"""
