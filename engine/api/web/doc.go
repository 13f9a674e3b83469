// Package web is what every wire does alike with HTTP and JSON: read a body strictly, send a reply in one piece or as
// server-sent events, keep a waiting client alive. It knows no wire's shapes.
package web
