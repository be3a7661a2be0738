"""The exporters, one attempt each, and the choice among them by what their files compute."""
