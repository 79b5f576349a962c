"""Commands that measure, and what they are made of.

`run.py` measures speed: `experiences`, `flatness`, `growth`, `learners`, `raw`,
`sizes` and `startup` are its parts, and no commands. Commands of their own are
`front.py` (ways to compute what is below the latent layer), `precision.py`
(layers in bfloat16), `serving.py` (exports: sizes and times) and `agreement.py`
(exports: whether they predict as the learner does); `--help` says more of each.
"""
