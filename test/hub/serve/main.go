// Command serve runs the test hub on its own: each --repo ORG/NAME=FOLDER becomes a repository with one revision, files
// of a megabyte and more as LFS. It prints one JSON line {"url","cdn","token","repos":{NAME: REVISION}} and serves
// until its standard input closes.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	testhub "slipway/test/hub"
)

type repos map[string]string

func (r repos) String() string { return fmt.Sprint(map[string]string(r)) }

func (r repos) Set(value string) error {
	name, dir, ok := strings.Cut(value, "=")
	if !ok {
		return fmt.Errorf("%q is not ORG/NAME=FOLDER", value)
	}
	r[name] = dir
	return nil
}

func main() {
	folders, lfs := repos{}, int64(0)
	flag.Var(folders, "repo", "ORG/NAME=FOLDER, may be given several times")
	flag.Int64Var(&lfs, "lfs-bytes", 1<<20, "files of this size and more are LFS files")
	gated := flag.Bool("gated", false, "every repository asks for the token")
	rate := flag.Int64("bytes-per-second", 0, "limit of each answer")
	flag.Parse()
	if err := run(folders, lfs, *gated, *rate); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(folders repos, lfs int64, gated bool, rate int64) error {
	dir, err := os.MkdirTemp("", "testhub")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := testhub.Start(dir)
	if err != nil {
		return err
	}
	defer server.Close()
	server.BytesPerSecondPerStream = rate
	revisions := map[string]string{}
	for name, folder := range folders {
		var files []testhub.File
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(folder, path)
			if err != nil {
				return err
			}
			files = append(files, testhub.File{Path: filepath.ToSlash(relative),
				Content: io.NewSectionReader(f, 0, info.Size()), LFS: info.Size() >= lfs})
			return nil
		})
		if err != nil {
			return err
		}
		repo, err := server.Add(name, files...)
		if err != nil {
			return err
		}
		repo.Gated = gated
		revisions[name] = string(repo.Revision)
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"url": server.URL, "cdn": server.CDNURL,
		"token": server.Token, "repos": revisions}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
