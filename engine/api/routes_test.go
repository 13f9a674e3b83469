package api

import (
	"net/http"
	"testing"

	"slipway/engine/api/web"
)

func TestTwoWiresCannotAnswerOnePath(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a second wire answers a path of the first, and nothing says so")
		}
	}()
	all := &routes{exact: map[string][]*route{}}
	models := web.Route{Method: http.MethodGet, Path: "/v1/models"}
	all.add(nil, []web.Route{models, {Method: http.MethodPost, Path: "/v1/models"}})
	all.add(nil, []web.Route{models})
}
