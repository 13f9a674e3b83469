// Package consent holds what a person allowed and asks for the rest. A grant is per class of action; a plan's digest
// grants exactly that plan. What an environment variable says about an assistant or CI chooses how to ask, never what
// was allowed.
package consent
