"""reasoning-gym's data sets through one adapter, with our splits and strict verdicts.

`rg/gcd:default` in plain wording is reasoning-gym's own question at its own settings; `1`, `2`, ... are the steps of
its curriculum. 103 of 106 data sets are there; `REFUSED` says why the others are not. `COMPACT` are the 12 that the
seed models read, at four levels and more (`=` asks for the answer, `:` for a worked chain that ends in it). All four
seed models get 10-40 % right at level 5 (products: at level 2):

    data set                 example                            levels 1 | 2 | 3 | 4 | 5
    complex_arithmetic       cx(3+4i)-(1-2i)=2+6i               +- to 9 | * to 12, chain | * to 12 | * to 99 | +- to 11
    products                 mul12*34:360,48=408                2 digits, chain | 2 | 3, chain | 4
    fraction_simplification  frac36/48:12=3/4                   by 2-6, chain | by 2-20, chain | by 2-50 | by 11-100
                                                                | to 80 by 2-20, chain
    base_conversion          base3>2 1021:1,3,11,34;17,8,4,2,1=100010
                                                                bases 2-6, chain | 2-9, chain | 2-6 | 2-16
                                                                | 2-9 to 500, chain
    leg_counting             legs 3 crab,2 dog:30+8=38          2 kinds, chain | 3, chain | 3 | 3, hundreds
                                                                | 2 to 30, chain
    number_sorting           sort<34,12,5=5,12,34               3 numbers | 5 | 6, signed | 6 of 3 digits | 5-7
    number_filtering         keep>9 3,18,12=18,12               3 numbers | 5 | 6, signed | 7 of 3 digits
                                                                | 5, signed, 1-3 left
    spell_backward           rev candle=eldnac                  3-5 letters | 6 | 7-8 | 9-10 | 8-10
    palindrome_generation    pal tsats=tsast                    5 letters | 7 | 9 | 14 | 9, single one first
    ab                       ab AbaB=bB                         7 tokens | 10 | 14 | 24 | 17
    shortest_path            path *O#/OXO/XXO=RR                3x3 | 4x4 | 5x5 | 6x6, six steps or more | 6x6
                                                                | 6: 4x9, six steps or more
    graph_color              col4 01,12,23=1212                 6 vertices | 7 | 8 | 10 | 8-10
"""

from evolvent.tasks.reasoning_gym.compact import COMPACT
from evolvent.tasks.reasoning_gym.source import NAMES, REFUSED
from evolvent.tasks.reasoning_gym.task import ReasoningGym

__all__ = ["COMPACT", "NAMES", "REFUSED", "ReasoningGym"]
