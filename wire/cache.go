package wire

import "time"

// CacheContents is what a folder of restore points holds, by its files alone: `slipway-server cache show` prints it.
type CacheContents struct {
	SchemaVersion int       `json:"schema_version"` // 1
	Points        int       `json:"points"`
	PointBytes    int64     `json:"point_bytes"`
	Pages         int       `json:"pages"`
	PageBytes     int64     `json:"page_bytes"`
	ReplyBytes    int64     `json:"reply_bytes"`
	Oldest        time.Time `json:"oldest,omitzero"` // point; absent without any
	Newest        time.Time `json:"newest,omitzero"`
	InUse         bool      `json:"in_use"` // by a running server
}

// Bytes is all that is kept.
func (c CacheContents) Bytes() int64 { return c.PointBytes + c.PageBytes + c.ReplyBytes }
