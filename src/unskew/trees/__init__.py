"""Boosted trees: LightGBM and XGBoost behind one protocol."""
