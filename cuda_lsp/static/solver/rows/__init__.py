"""Addresses that are rows and columns: two of them are equal exactly when rows and columns are.

``pitch``: what a pitch is, and which ones an address has. ``apart``: whether rows overlap, which is shown
from the program's own guards or taken for granted. ``stated``: what the source says against that.
"""
