"""The only place that imports or knows Hermes."""
