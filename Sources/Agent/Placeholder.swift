// Composition.
