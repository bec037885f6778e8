// HTTP out.
