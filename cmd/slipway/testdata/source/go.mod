module slipway

go 1.26.0
