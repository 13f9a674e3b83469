// Package weights reads published checkpoints of the Qwen3.5 family from a folder: safetensors files mapped into
// memory, MLX-quantised or float tensors, Hugging Face or MLX conventions, and an MTP head wherever it is shipped.
//
// It answers in the model's own terms (Matrix, norm scales, float vectors), so that nothing above it knows file names,
// name prefixes or conventions. Whatever does not fit is a *MisfitError that names the file, the tensor, what was found
// and what was wanted. Nothing is converted that a device can read as it is: Matrix points into the mapping.
package weights
