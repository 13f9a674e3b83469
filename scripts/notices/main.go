// Command notices keeps THIRD_PARTY_NOTICES.txt: the licence texts of every module that is linked into one of the two
// programs, on any target. It refuses a licence that is not permissive. Without -write it only checks.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"slipway/scripts/kept"
)

const noticesFile = "THIRD_PARTY_NOTICES.txt"

var file = kept.File{Name: noticesFile, Compute: compute}

func main() { kept.Main(file) }

// module is one linked module; Dir holds its files in the module cache.
type module struct{ Path, Version, Dir string }

// compute returns the contents that THIRD_PARTY_NOTICES.txt should have, modules sorted by path.
func compute(root string) ([]byte, error) {
	modules, err := linked(root)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintln(&out, "slipway is licensed under the Apache License 2.0 (LICENSE). Its programs contain the "+
		"modules below,")
	fmt.Fprintln(&out, "each under its own licence, reproduced as the module ships it.")
	for _, m := range modules {
		texts, err := licences(m)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "\n%s\n%s %s\n%s\n", strings.Repeat("=", 100), m.Path, m.Version, strings.Repeat("=", 100))
		for _, text := range texts {
			fmt.Fprintf(&out, "\n%s\n", strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
		}
	}
	return out.Bytes(), nil
}

// linked lists the modules in the programs on every target that we build for, sorted by path.
func linked(root string) ([]module, error) {
	seen := map[string]module{}
	for _, target := range []string{"linux/amd64", "linux/arm64", "darwin/arm64"} {
		system, arch, _ := strings.Cut(target, "/")
		cmd := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/...")
		cmd.Dir = root
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", target, err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var pkg struct{ Module *module }
			if err := dec.Decode(&pkg); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			if pkg.Module != nil && pkg.Module.Version != "" {
				seen[pkg.Module.Path] = *pkg.Module
			}
		}
	}
	var modules []module
	for _, m := range seen {
		modules = append(modules, m)
	}
	sort.Slice(modules, func(i, j int) bool { return modules[i].Path < modules[j].Path })
	return modules, nil
}

// licences returns a module's licence and notice texts, in the order of their names.
func licences(m module) ([][]byte, error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, fmt.Errorf("%s %s is not in the module cache: %w; run `go mod download`", m.Path, m.Version, err)
	}
	var texts [][]byte
	permissive := false
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !(strings.HasPrefix(name, "LICEN") || strings.HasPrefix(name, "COPYING") ||
			strings.HasPrefix(name, "NOTICE")) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
		permissive = permissive || isPermissive(string(text))
	}
	if !permissive {
		return nil, fmt.Errorf("%s %s: no permissive licence found among its files; it must not be linked", m.Path,
			m.Version)
	}
	return texts, nil
}

// isPermissive recognises the licences that we accept by a sentence that only they have.
func isPermissive(text string) bool {
	folded := strings.Join(strings.Fields(text), " ")
	for _, sentence := range []string{
		"Permission is hereby granted, free of charge, to any person obtaining a copy", // MIT
		"Permission to use, copy, modify, and/or distribute this software",             // ISC, 0BSD
		"Permission to use, copy, modify, and distribute this software",                // ISC, older form
		"Redistribution and use in source and binary forms, with or without",           // BSD
		"Apache License Version 2.0",
	} {
		if strings.Contains(folded, sentence) {
			return !strings.Contains(folded, "GNU GENERAL PUBLIC LICENSE") &&
				!strings.Contains(folded, "Mozilla Public License")
		}
	}
	return false
}
