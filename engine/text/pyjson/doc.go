// Package pyjson is JSON as Python keeps, writes and mistakes it, which is what chat templates and models were made
// with: objects in their order, text escaped as little as may be, floats in repr's form, and Python literals where
// JSON was meant.
package pyjson
