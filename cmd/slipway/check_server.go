package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/fault"
	"slipway/installer/operate"
	"slipway/termtext"
)

// judgedFlags say which server is measured or checked, and by what key.
func judgedFlags() []cli.Flag {
	return append(urlFlags(), homeFlag(),
		&cli.StringFlag{Name: "model", Usage: "model to ask for; left out: the server's only one"})
}

func urlFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "url", Usage: "address of any OpenAI-compatible server; left out: the server that " +
			"slipway started"},
		&cli.StringFlag{Name: "key-env", Usage: "name of the environment variable that holds the server's key"},
		&cli.StringFlag{Name: "key-file", Usage: "file that holds the server's key"},
		&cli.DurationFlag{Name: "patience", Value: 30 * time.Minute,
			Usage: "longest silence of the server that is waited for"},
	}
}

// judged is the server that the flags of a verb name.
func (s *session) judged(c *cli.Context) (operate.ServerInput, error) {
	key, err := s.keyOf(c)
	return operate.ServerInput{URL: c.String("url"), Model: c.String("model"), Key: key,
		Patience: c.Duration("patience")}, err
}

// keyOf reads a key only from where the flags say: a key for one server is not for another.
func (s *session) keyOf(c *cli.Context) (string, error) {
	return s.keyNamed(c.String("key-env"), c.String("key-file"))
}

func (s *session) keyNamed(name, file string) (string, error) {
	if name != "" && file != "" {
		return "", usage("a key is given both by a variable and by a file")
	}
	key := ""
	switch {
	case name != "":
		if key = strings.TrimSpace(os.Getenv(name)); key == "" {
			return "", &failure{Code: exitAuth, What: fmt.Sprintf("The environment has no %s.", name),
				Then: "Set it, or give the key by --key-file."}
		}
	case file != "":
		raw, err := s.read(func() ([]byte, error) { return os.ReadFile(file) })
		if err != nil {
			return "", usage("--key-file: " + fault.Innermost(err))
		}
		key = termtext.Secret(raw)
		if key == "" {
			return "", usage("--key-file: the file is empty")
		}
	}
	return key, nil
}
