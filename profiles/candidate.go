package profiles

// WindowStepTokens is the grain of every window: windows are multiples of it, and the smallest is one step.
const WindowStepTokens = 4096

// Candidate is a model as sizing sees it: a manifest without its files.
type Candidate struct {
	ID            string
	Title         string
	Geometry      Geometry
	DFlash2       *DraftGeometry // nil: no such draft goes with this model
	DownloadBytes int64          // 0 for an embedded model
	Embedded      bool

	DraftDownloadBytes int64
}
