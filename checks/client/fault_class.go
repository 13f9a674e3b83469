package client

import (
	"net/http"

	"slipway/fault"
)

// Fault gives the class and the next step of a server that did not answer as the API says; see package fault.
func (f *Fault) Fault() fault.Fault {
	switch f.Kind {
	case BadAddress, NoModel:
		return fault.Fault{Class: fault.Usage}
	case Unreachable:
		return fault.Fault{Class: fault.Network, Step: fault.StartServer}
	case Silent:
		return fault.Fault{Class: fault.Timeout, Step: fault.WaitLonger}
	case NotJSON:
		return fault.Fault{Class: fault.Network, Step: fault.CheckProgram}
	case Refused:
		return faultOfStatus(f.Status)
	}
	return fault.Fault{Class: fault.CheckFailed, Step: fault.ReadServerLog}
}

func faultOfStatus(status int) fault.Fault {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.Fault{Class: fault.Auth, Step: fault.GiveKey}
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return fault.Fault{Class: fault.NotReady, Step: fault.WaitForRoom}
	case status >= 300 && status < 400, status == http.StatusNotFound, status == http.StatusMethodNotAllowed,
		status == http.StatusNotImplemented: // what is there knows no POST
		return fault.Fault{Class: fault.Network, Step: fault.CheckModel}
	case status >= 500:
		return fault.Fault{Class: fault.CheckFailed, Step: fault.ReadServerLog}
	}
	return fault.Fault{Class: fault.CheckFailed, Step: fault.OtherRequest}
}
