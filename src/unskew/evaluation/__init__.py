"""How good a ranking is: label metrics, significance, counterfactual estimates from clicks.

The folder is not called ``evaluate`` because `unskew.evaluate` is the function.
"""
