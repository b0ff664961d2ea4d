"""Local `evaluate` modules: `evaluate.load(<this folder>/<name>)` needs no network.

`evaluate` copies a module into its cache, reads its imports with a regular expression (of
`import a, b` it sees one) and takes the first class that is a metric: write `import evaluate`,
never `from evaluate import Metric`.
"""
