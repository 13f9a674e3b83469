package mtl

// System is macOS's Metal.
func System() (Libraries, error) {
	return Libraries{
		Preload: []string{"/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics"},
		Metal:   "/System/Library/Frameworks/Metal.framework/Metal",
		ObjC:    "/usr/lib/libobjc.A.dylib",
	}, nil
}
