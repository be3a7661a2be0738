"""The fifty-fourth round: pieces of vision, speech, decoding, numbers, state, sizes and attention."""
