"""The term algebra under one name: ``from cuda_lsp.static.symbolic import terms as t``."""

# ruff: noqa: F403
from cuda_lsp.static.symbolic.choices import *
from cuda_lsp.static.symbolic.core import *
from cuda_lsp.static.symbolic.integers import *
from cuda_lsp.static.symbolic.logic import *
from cuda_lsp.static.symbolic.quotients import *
from cuda_lsp.static.symbolic.rewrite import *
from cuda_lsp.static.symbolic.text import *
from cuda_lsp.static.symbolic.wraps import *
