package structured

// formats are the expressions of those formats that OpenAI's strict mode knows: RFC 3339 for times, RFC 5321 and 1123
// for names, RFC 4122 for UUIDs. Each takes only what is valid, if not all of it: no leap seconds, no quoted local
// parts of addresses, no names in punycode.
var formats = map[string]string{
	"date":      `^` + date + `$`,
	"time":      `^` + clock + `$`,
	"date-time": `^` + date + `T` + clock + `$`,
	"duration": `^P((\d{1,4}Y)(\d{1,4}M(\d{1,4}D)?)?(` + span + `)?|(\d{1,4}M)(\d{1,4}D)?(` + span + `)?|(\d{1,4}D)(` +
		span + `)?|` + span + `|\d{1,4}W)$`,
	"email":    `^[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@` + host + `$`,
	"hostname": `^` + host + `$`,
	"ipv4":     `^` + ipv4 + `$`,
	"ipv6":     `^` + ipv6 + `$`,
	"uuid":     `^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`,
}

const (
	date = `(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))|` +
		`(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)`
	clock = `([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`
	span  = `T(\d{1,4}H(\d{1,4}M(\d{1,4}S)?)?|\d{1,4}M(\d{1,4}S)?|\d{1,4}S)`
	label = `[A-Za-z0-9]{1,20}(-[A-Za-z0-9]{1,20}){0,2}`
	host  = label + `(\.` + label + `){0,3}`
	byte8 = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	ipv4  = byte8 + `(\.` + byte8 + `){3}`
	h16   = `[0-9a-fA-F]{1,4}`
	ipv6  = `((` + h16 + `:){7}` + h16 + `|` + h16 + `(:` + h16 + `){0,2}::` + h16 + `(:` + h16 + `){0,2}|::1?)`
)
