"""Export: a model in the formats of other systems, one file each, and the scorer that serves it."""
