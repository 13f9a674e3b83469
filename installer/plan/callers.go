package plan

import "slipway/wire"

// OriginKeyPath is the key that pages of the allowed origins send, below the home: random, made by the settings, and
// kept for as long as the home is.
const OriginKeyPath = "state/origin.key"

// NoCallers, alone, is the empty list.
const NoCallers = "none"

// ReadHosts reads names for the Host header.
func ReadHosts(texts []string) (Kinds, error) { return readCallers(texts, wire.ReadHost) }

// ReadOrigins reads origins, or whole schemes of desktop programs.
func ReadOrigins(texts []string) (Kinds, error) { return readCallers(texts, wire.ReadOrigin) }

func readCallers(texts []string, read func(string) (string, error)) (Kinds, error) {
	if len(texts) == 1 && texts[0] == NoCallers {
		return "", nil
	}
	var names []string
	for _, text := range texts {
		name, err := read(text)
		if err != nil {
			return "", err
		}
		names = append(names, name)
	}
	return KindsOf(names), nil
}
