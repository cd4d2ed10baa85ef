"""Generating text with a language model that is cut over ranks by tensor parallelism.

A front takes requests and knows no torch. Each instance of the model is a job of ranks: rank 0
decides what the next step computes and tells the others, all of them compute their part, and two
all-reduces a layer put the parts together.

    front (server, generate, walk)
      instance 0: rank 0, rank 1, ...
      instance 1: rank 0, rank 1, ...

What follows runs in the front: `tokenizer`, `asked`, `server`, `replicas`, `instance`, `walk`; and
in the ranks: `rank`, `engine`, `batch`, `model`, `cut`, `exchange`, `sampling`, `text`.
"""
