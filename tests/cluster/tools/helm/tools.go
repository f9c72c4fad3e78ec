//go:build tools

// Package tools pins the helm that ./build compiles.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
