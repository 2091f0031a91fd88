"""The dynamic analysis: a kernel is compiled, executed and watched; what was seen becomes findings."""
