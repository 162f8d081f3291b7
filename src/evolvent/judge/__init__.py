"""Judge: verifiers, reward models, generative judges, shaping."""
