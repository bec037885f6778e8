// Tests of Corpus.
