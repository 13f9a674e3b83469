package main

import (
	"path/filepath"
	"testing"
)

func TestEveryLinkedModuleHasItsNotice(t *testing.T) {
	if err := file.Check(filepath.Join("..", "..")); err != nil {
		t.Fatal(err)
	}
}

func TestCopyleftLicenceIsRefused(t *testing.T) {
	for text, want := range map[string]bool{
		"Permission is hereby granted, free of\ncharge, to any person obtaining a copy of this": true,
		"Apache License\n  Version 2.0, January 2004":                                           true,
		"GNU GENERAL PUBLIC LICENSE Version 3":                                                  false,
		"Mozilla Public License Version 2.0":                                                    false,
		"All rights reserved.":                                                                  false,
	} {
		if isPermissive(text) != want {
			t.Errorf("%q: permissive is %v, want %v", text, !want, want)
		}
	}
}
