// sd_notify and the journal.
