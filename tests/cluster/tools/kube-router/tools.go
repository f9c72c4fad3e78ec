//go:build tools

// Package tools pins the kube-router that ./build compiles.
package tools

import (
	_ "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
)
