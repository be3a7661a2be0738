"""What a person sees of a sweep: `index.html` and the same facts as JSON, JUnit XML, a step summary and a badge."""
