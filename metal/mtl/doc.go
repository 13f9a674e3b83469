// Package mtl binds Metal's compute calls without cgo: libobjc and Metal are opened at run time, and every call is one
// objc_msgSend.
//
// Methods check what would be an Objective-C exception and end the process: nil objects, offsets past a buffer,
// indices, sizes. Such a breach is our bug and panics with a sentence. The maker of an object owns it and releases it
// with Release; what Metal autoreleases (command buffers, encoders) lives as long as the pool of Runtime.Pool that it
// was made in.
//
// The same code runs on a Mac and, over package fake, in every test.
package mtl
