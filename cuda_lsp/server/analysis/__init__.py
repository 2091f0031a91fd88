"""The analysis in a process of its own, which may crash, hang or be killed: a file is lost, never the server.

``process.py`` is the server's hold on it, ``child.py`` its inside around the thread of ``documents.py``;
``slate.py`` and ``reports.py`` are what both sides speak.
"""
