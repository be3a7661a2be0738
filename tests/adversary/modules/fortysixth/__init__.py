"""Round 46: pictures and points, sounds, language, numbers and memory, objects and joint sizes."""
