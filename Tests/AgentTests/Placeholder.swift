// Tests of Agent.
