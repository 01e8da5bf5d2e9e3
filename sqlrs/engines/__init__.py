"""The databases that sqlrs runs on, each driver in its own module."""
