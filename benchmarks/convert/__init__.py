"""What a conversion costs beside the plain exporter and the plain build."""
