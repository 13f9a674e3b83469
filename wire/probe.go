package wire

// Probe is what `slipway-server probe` prints: facts of the device, and the settings that serve honours.
type Probe struct {
	SchemaVersion int       `json:"schema_version"` // 1
	Version       string    `json:"version"`
	OS            string    `json:"os"`
	Arch          string    `json:"arch"`
	Cores         int       `json:"cores"`
	Device        string    `json:"device"`  // what --device auto takes, where its self-test passes
	Devices       []string  `json:"devices"` // what --device takes
	GPU           *GPUFacts `json:"gpu"`     // null where Metal cannot be opened
	// NoMetal says why; empty where it can.
	NoMetal string `json:"no_metal,omitempty"`

	// Limits that a device sets by itself; null where it sets none, as the CPU does.
	RecommendedMaxWorkingSet *int64 `json:"recommended_max_working_set"` // bytes
	MaxBufferLength          *int64 `json:"max_buffer_length"`           // bytes

	Capabilities Capabilities `json:"capabilities"`
}

// GPUFacts is what Metal says of the default device.
type GPUFacts struct {
	Name            string `json:"name"`
	AppleFamily     int    `json:"apple_family"` // 7 is M1
	Metal3          bool   `json:"metal3"`
	Metal4          bool   `json:"metal4"`
	UnifiedMemory   bool   `json:"unified_memory"`
	ResidencySets   bool   `json:"residency_sets"` // macOS 15
	WorkingSetBytes int64  `json:"recommended_max_working_set"`
	MaxBufferBytes  int64  `json:"max_buffer_length"`
}

// Capabilities is what a server can honour.
type Capabilities struct {
	KVFormats []string `json:"kv_formats"` // of all devices
	// by device, the exact one first; a missing device has all
	KVFormatsOf     map[string][]string `json:"kv_formats_of,omitempty"`
	Operands        []string            `json:"operands"` // of prefill on metal, the exact one first; none without it
	PrefillPolicies []string            `json:"prefill_policies"`
	Drafts          []string            `json:"drafts"`
	Devices         []string            `json:"devices"`
}

// On leaves the KV formats that a device keeps.
func (c Capabilities) On(device string) Capabilities {
	if formats, ok := c.KVFormatsOf[device]; ok {
		c.KVFormats = formats
	}
	return c
}
