"""The side-by-side harness behind bench/run. Python's standard library only; see bench/README.md."""
