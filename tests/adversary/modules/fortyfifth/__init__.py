"""The forty-fifth round: lengths of code as it is written, values on boundaries, objects and what torch is asked, scenes of vision and speech."""
