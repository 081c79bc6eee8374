"""Descriptions of well-known GPUs, shared by the packages that render for them and debug them."""
