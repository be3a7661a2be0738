"""What turns docs/ into a site: hooks of MkDocs, pages made from the code, and the test that it loads nothing."""
