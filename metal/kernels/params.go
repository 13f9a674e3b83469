package kernels

// Parameter structs, field by field as in the .metal files, which explain them. Each field has four bytes; a test
// compares sizes and offsets with the compiler's.
type (
	EmbedParams   struct{ Rows, In uint32 }
	RMSNormParams struct {
		Rows, Cols, Stride, Column uint32
		Eps                        float32
	}
	LinearParams     struct{ Rows, Out, In, Add, Stride uint32 }
	SwiGLUParams     struct{ Count uint32 }
	GatherParams     struct{ Rows, Cols uint32 }
	RotationParams   struct{ Rows, Pairs uint32 }
	LinearGemvParams struct{ In, Add, Tile1, Tile2, Tile3, Out0, Out1, Out2, Out3 uint32 }
	LinearRowsParams struct{ In, Add, Tile1, Tile2, Tile3, Out0, Out1, Out2, Out3 uint32 }
	DeltaInputParams struct{ Rows, Channels, Heads, Convolve, KeepInput, KeepRest uint32 }
	TopKParams       struct{ Rows, Cols, K uint32 }
	DeltaStepParams  struct{ Rows, KeyHeads, ValueHeads, KeyDim, ValueDim uint32 }
	GatedNormParams  struct {
		Heads, Dim uint32
		Eps        float32
	}
	AttentionInputParams struct {
		Rows, Heads, KVHeads, Dim, Pairs uint32
		Eps                              float32
	}
	AttentionParams struct {
		Rows, Row, Start, Heads, KVHeads, Dim, Sink, Window, DenseFrom uint32
		Scale                                                          float32
	}
	AttentionDecodeParams struct {
		AttentionParams
		Splits, SplitTokens uint32
	}
)
