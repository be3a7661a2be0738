"""Functions whose windows and sizes follow a dynamic shape, traced in a form that both exporters can write."""
