// Waits for a mail with the client that openapi-generator makes: main BASE_URL TOKEN ADDRESS
package main

import (
	"context"
	"fmt"
	"os"

	client "example.com/client"
)

func main() {
	address := os.Args[3]
	configuration := client.NewConfiguration()
	configuration.Servers = client.ServerConfigurations{{URL: os.Args[1]}}
	configuration.AddDefaultHeader("x-api-token", os.Args[2])
	api := client.NewAPIClient(configuration).TokenAPI
	ctx := context.Background()

	request := client.WaitForEmailRequest{}
	request.SetAddress(address)
	request.SetSince("0")
	request.SetMatch(client.WaitForEmailRequestMatch{Has: []client.EmailFeature{"code"}})
	found, _, err := api.WaitForEmail(ctx).WaitForEmailRequest(request).Execute()
	exitOn(err)

	tokens, _, err := api.ListLiveTokens(ctx).Execute()
	exitOn(err)
	expires := tokens.Tokens[0].ExpiresAt.Get()
	fmt.Println(found.Codes[0].Code, expires == nil)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
