"""Keep: what outlasts a step: replay buffers, archives, memories."""
