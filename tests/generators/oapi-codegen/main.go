// Waits for a mail with the client that oapi-codegen makes: main BASE_URL TOKEN ADDRESS
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"example.com/wait/client"
)

func main() {
	address, since := os.Args[3], "0"
	signed := client.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("x-api-token", os.Args[2])
		return nil
	})
	api, err := client.NewClientWithResponses(os.Args[1], signed)
	exitOn(err)
	ctx := context.Background()

	found, err := api.WaitForEmailWithResponse(ctx, client.WaitForEmailJSONRequestBody{Address: &address, Since: &since})
	exitOn(err)
	tokens, err := api.ListLiveTokensWithResponse(ctx, nil)
	exitOn(err)
	fmt.Println(found.JSON200.Codes[0].Code, tokens.JSON200.Tokens[0].ExpiresAt == nil)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
