// Package safetensors reads headers of safetensors files, converts their elements, quantises rows and writes small
// files. It is a leaf that installer and engine share; it opens no file and maps none.
package safetensors
