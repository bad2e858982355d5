"""The whole story on simulated clicks, and the page that tells it."""
