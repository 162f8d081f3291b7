"""Agent symbolic learning: language loss, gradients handed from the last node to the first, symbolic optimizers."""
