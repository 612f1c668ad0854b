// Node with nothing to do: the floor of `--version` and `--help`.
