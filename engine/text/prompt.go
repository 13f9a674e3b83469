package text

// Prompt is what a chat template rendered. Text is the prompt as the reference engines would have it, byte for byte;
// the guards hidden beside it remember where a person's text spells out an added token, so that
// [Tokenizer.EncodePrompt] gives ordinary tokens there: a user who writes <|im_end|> cannot end a turn. Tokens that the
// template itself writes are recognised. /v1/completions, which has no template, uses [Tokenizer.Encode] with
// SpecialTokens instead.
type Prompt struct {
	Text   string
	guards []guard // in order, disjoint
}

// guard is a range of Prompt.Text, [start,end) in bytes, over which no added token is recognised.
type guard struct{ start, end int }
