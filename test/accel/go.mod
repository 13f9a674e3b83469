module slipway/test/accel

go 1.26.0

require (
	github.com/ebitengine/purego v0.11.3
	slipway v0.0.0
)

require golang.org/x/sys v0.50.0 // indirect

replace slipway => ../..
