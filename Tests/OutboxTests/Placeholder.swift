// Tests of Outbox.
