package ruler

// Wording of the tasks: from RULER, Copyright (c) 2024, NVIDIA CORPORATION, Apache License 2.0 (NOTICE.md). What stands
// in braces is filled in by the generators; niahOne is the form that RULER's generator makes for one key and one value.
const (
	niahOne = "A special magic {type_needle_v} is hidden within the following text. Make sure to memorize it. I " +
		"will quiz you about the {type_needle_v} afterwards.\n{context}\nWhat is the special magic {type_needle_v} " +
		"for {query} mentioned in the provided text?"
	niahNeedle = "One of the special magic {type_needle_v} for {key} is: {value}."
	vtTemplate = "Memorize and track the chain(s) of variable assignment hidden in the following " +
		"text.\n\n{context}\nQuestion: Find all variables that are assigned the value {query} in the text above."
	vtPrefix = " Answer: According to the chain(s) of variable assignment in the text above, {num_v} variables " +
		"are assigned the value {query}, they are: "
	cweTemplate = "Below is a numbered list of words. In these words, some appear more often than others. Memorize " +
		"the ones that appear most often.\n{context}\nQuestion: What are the 10 most common words in the above list?"
	cwePrefix   = " Answer: The top 10 words that appear most often in the list are:"
	fweTemplate = "Read the following coded text and track the frequency of each coded word. Find the three most " +
		"frequently appeared coded words. {context}\nQuestion: Do not provide any explanation. Please ignore the " +
		"dots '....'. What are the three most frequently appeared words in the above coded text?"
	noise = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
)

// Scoring is RULER's string_match_all.
const Scoring = "RULER's string_match_all: the share of the wanted strings that are in the answer, whatever its " +
	"case and whatever else it says"
