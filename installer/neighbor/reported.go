package neighbor

// Servers that slipway can name by their program and knows nothing else about. They are reported like any unknown
// listener: never asked to stop.
var kapitsa = kind{id: "kapitsa", title: "Kapitsa", ports: []int{8008, 8010}, runs: func(c command) bool {
	return c.named("kapitsa")
}}

var splash = kind{id: "splash", title: "Splash", ports: []int{8000},
	runs: func(c command) bool { return c.named("splash") && c.verb("serve") }}
