//go:build unix && !darwin

package mac

import "errors"

// SystemPower is macOS's, which is not here.
func SystemPower() (*Power, error) {
	return nil, errors.New("only macOS is asked to stay awake")
}
