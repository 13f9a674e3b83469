// Package model is the text network of the Qwen3.5 family: gated delta net layers, every fourth a gated full-attention
// layer, and the MTP head. It is written once against engine/device.
//
//	Load -> Network; Network.NewSequence -> Sequence; Network.Forward advances sequences by tokens
//
// A sequence is a page table of attention memory plus a recurrent state; Save and Restore keep and bring back both.
package model
