//go:build tools

// Package tools pins the kube-score that ./build compiles.
package tools

import (
	_ "github.com/zegl/kube-score/cmd/kube-score"
)
