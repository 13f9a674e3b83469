// Package metal is the product's device: engine/device over Metal, through package mtl, with the kernels of package
// kernels.
//
// Activations and the residual stream are f32, keys and values f16; prefill multiplies 16-bit operands and adds in f32;
// a matrix product of up to 8 rows keeps f32 activations. Results depend on how a prompt is cut, within the tolerances
// that the kernels state.
//
// Neighbouring operations use one kernel where that gives the same numbers: the products of one input; gate, up and
// SwiGLU; convolution, gates and tape. The parameters of all kernels of a pass are in one buffer, and a dispatch binds
// all its buffers with one message. Attention memory is f16, or 8 bits a value (device.KVQ8). A prefill runs the
// recurrence by chunks, everything else token by token.
//
// A pass is recorded, then encoded into command buffers of at most CommandSeconds of estimated GPU time, at most two in
// flight. Within a command buffer dispatches may run together unless one needs what another wrote: the encoder knows
// what each reads and writes and adds a barrier where one is needed. A fast kernel that this machine's Metal does not
// accept is replaced by its plain variant and named in Degraded.
package metal
