// Tests of System.
