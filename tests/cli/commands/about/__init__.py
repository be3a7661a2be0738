"""Commands that tell about trtconv itself."""
