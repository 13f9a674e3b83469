package model

import (
	"slipway/engine/families"
	"slipway/engine/model/arch"
	"slipway/engine/weights"
)

// Config is what config.json and generation_config.json say about the network.
type Config = arch.Config

// ParseConfig reads the two files by the rules of their family; generation may be nil. Errors are *weights.MisfitError
// that name the field.
func ParseConfig(config, generation []byte) (*Config, error) {
	f, err := families.Of(config)
	if err != nil {
		return nil, err
	}
	return f.Network.Parse(config, generation)
}

func misfit(field, found, wanted string) error {
	return &weights.MisfitError{File: "config.json", Tensor: field, Found: found, Wanted: wanted}
}
