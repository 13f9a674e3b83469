// Package sample turns logits into a token: logits -> penalties and bias -> truncated distribution -> choice.
//
// It is pure: the generator's seed is an argument, there is no clock and no shared state. [Sampler.Distribution] is the
// one function that truncates; a draft and the network that verifies it must both use it, or acceptance is needlessly
// lost (the output stays exact either way).
//
// Order: repetition, presence and frequency penalties, logit bias, mask, temperature, top_k, top_p, min_p. The last
// four are in the order of Hugging Face's generate, which vLLM shares; top_p and min_p see the distribution that is
// renormalised after top_k.
package sample
