// Package memory keeps the state of sequences. For now it holds the book of attention pages: which are free, who refers to
// them, and how far each has been written. It moves no bytes; the device does.
package memory
