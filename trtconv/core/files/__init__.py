"""Files read and written safely: sets that belong together, private folders, outputs that may be written."""
