// Package structured holds a reply to a JSON Schema while it is written: after each token it says which tokens may come
// next, so that every reply that ends by itself is JSON and validates.
//
// Main line: [NewVocabulary] sorts the tokens of a tokenizer once; [Compile] reads a schema into a [Grammar];
// [Grammar.Follow] gives one reply's [Follower], whose Mask the sampler asks before every token.
//
// # How it works
//
// A schema becomes a graph of nodes; a node is the list of the kinds of value that it allows (leaf). What was written
// so far is a stack of frames, one for each value that is open (machine.go); where a schema allows several
// alternatives, it is several stacks. A byte takes each stack to none, one or more others. A token may come if its
// bytes leave at least one stack. Every stack that is left can be completed, so that a reply never gets stuck.
//
// Inside a string nearly every token may come, and walking all of them takes too long for a step. Which tokens stay
// inside a string is therefore computed once, by the number of their characters (vocabulary.go), and for each state of
// a pattern when the schema is compiled (pattern.go); a step walks only the tokens that close the string.
//
// # What is written of what is valid
//
// Not every valid text can be written, and none that is not valid: members come in the order of the schema, blanks are
// few (blank.go), names of members that the schema does not list hold no escapes, and numbers have at most 18 digits
// before the point and 12 behind it.
//
// # Schemas
//
// Taken: type, enum, const, properties, required, additionalProperties, items, minItems, maxItems, minLength,
// maxLength, pattern, format (those of OpenAI's strict mode), minimum, maximum, exclusiveMinimum, exclusiveMaximum,
// multipleOf, anyOf, allOf, oneOf where the alternatives exclude each other, $ref within the document, recursion
// included, and true and false. Annotations are ignored. Every other keyword is an [*Error] that names it.
package structured
