"""The world `adapters`: programs that write down a low-rank change of a model's weights, as seeds and sizes."""
