package mac

// SystemPower is macOS's.
func SystemPower() (*Power, error) {
	return OpenPower(PowerLibraries{
		CoreFoundation: "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation",
		IOKit:          "/System/Library/Frameworks/IOKit.framework/IOKit",
	})
}
