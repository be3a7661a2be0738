"""Commands about trtconv itself: its rules, plugins, pages and this machine."""
