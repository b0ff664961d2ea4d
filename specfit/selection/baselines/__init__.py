"""Selection rules of other papers, each as its public text has it, on this project's pools.

All draft with the same head and the same top-2 pool, verify with the same engine and give the
target's own ids; they differ in which nodes they take and, where they fix a length beforehand, in
how many levels they draft. None had public code when these were written. What a docstring calls
*ours* could not be known and was chosen before any table was drawn; nothing was tuned after.
"""
