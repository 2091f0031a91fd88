"""How far pieces of one allocation lie apart: host code followed, statement by statement, up to a launch.

``Arena a(w); float* p = a.take(n); float* q = a.take(m); k<<<…>>>(p, q)``: classes, lambdas and functions
that hand out parts of a buffer are executed with sizes as polynomials. ``syntax.py`` reads expressions
(``nodes.py``), ``values.py`` says what they are worth, ``machine.py`` holds variables; ``statements.py``,
``evaluation.py``, ``calls.py`` and ``objects.py`` execute, and ``apart.py`` tells the result. What is not
understood changes all that it names (``forgetting.py``).
"""
